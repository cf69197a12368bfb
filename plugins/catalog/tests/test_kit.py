"""The fixture of the catalog's own kit."""

from __future__ import annotations

import anyio

from standards_mcp_catalog.local.catalog import LocalCatalog


def test_the_catalog_has_ten_records_in_trees(ten_records: LocalCatalog):
    records = {each.statement_notation: each for each in ten_records.store.records()}
    assert len(records) == 10
    part = records["3.NF.A.2a"]
    assert part.description == "Mark one part of a whole"
    above = anyio.run(ten_records.fetch, part.ancestor_ids)
    assert [each.statement_notation for each in above] == ["3.NF", "3.NF.A", "3.NF.A.2"]
    facets = anyio.run(ten_records.facets)
    counts = map(len, (facets.subjects, facets.jurisdictions, facets.education_levels))
    assert list(counts) == [2, 2, 3]
    hits = anyio.run(ten_records.search, "slices of pizza", 1).hits
    assert hits[0].record.statement_notation == "3.NF.A.1"
