"""Digests of catalogs, settings and files."""

from __future__ import annotations

import hashlib
import io

import anyio
import pytest

from standards_mcp_alignment.provenance import (
    catalog_digest,
    digest_of,
    digest_of_file,
    provenance_of,
    records_digest,
)


def test_the_digest_of_a_catalog_changes_with_any_text_and_back(standards):
    store = standards.store
    before = anyio.run(catalog_digest, standards)
    [record, *_] = store.find("5.SC.1.1")
    changed = record.model_copy(update={"description": record.description + "!"})
    store.upsert([changed])
    assert anyio.run(catalog_digest, standards) != before
    store.upsert([record])
    assert anyio.run(catalog_digest, standards) == before
    store.delete([record.id])
    assert anyio.run(catalog_digest, standards) != before


def test_the_order_of_standards_does_not_matter(standards):
    records = anyio.run(standards.select, {"subject": "Mathematics"}, 10)
    assert len(records) == 4
    assert records_digest(records) == records_digest(records[::-1])
    assert records_digest(records) != records_digest(records[1:])


def test_a_provenance_names_everything(standards):
    found = anyio.run(provenance_of, standards, {"top": 3}, {"a.md": "0" * 64}).to_dict()
    digests = (found["catalog"], found["model"], found["settings"], *found["inputs"].values())
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)
    assert found["catalog_records"] == 6
    assert found["model_name"].startswith("all-MiniLM")
    assert found["version"]


@pytest.mark.parametrize(
    ("left", "right"),
    [({"a": 1, "b": 2}, {"b": 2, "a": 1}), ("text", b"text"), ([1, "\ud800"], [1, "\ud800"])],
)
def test_equal_data_has_one_digest(left, right):
    assert digest_of(left) == digest_of(right)
    assert digest_of(left) != digest_of([left])


def test_the_digest_of_a_file_is_that_of_its_bytes():
    data = bytes(range(256)) * 9000
    file = io.BytesIO(data)
    file.read(10)
    assert digest_of_file(file) == hashlib.sha256(data).hexdigest()
    assert file.tell() == 0
