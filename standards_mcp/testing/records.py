"""Ten records in words of our own: enough to try a plugin on, and nobody's official text.

Aland has a tree for mathematics in grade 3 (a domain, a cluster, two standards, a standard in two
parts), one standard of grade 4 and one of science; Borduria has fractions of grade 3 and one
standard of grade 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from standards_mcp.catalog.local.catalog import LocalCatalog
from standards_mcp.catalog.local.seeding import Seed, SeedSource
from standards_mcp.catalog.records import StandardRecord


class _Row(NamedTuple):
    id: str
    parent: str
    state: str
    subject: str
    grade: str
    label: str
    code: str
    text: str


_MATHS: Final = "Mathematics"
_SCIENCE: Final = "Science"
_ROWS: Final = (
    _Row("A", "", "Aland", _MATHS, "03", "Domain", "3.NF", "Fractions"),
    _Row("B", "A", "Aland", _MATHS, "03", "Cluster", "3.NF.A", "See fractions as numbers"),
    _Row("C", "B", "Aland", _MATHS, "03", "Standard", "3.NF.A.1", "Cut a pizza into equal parts"),
    _Row("D", "B", "Aland", _MATHS, "03", "Standard", "3.NF.A.2", "Fold paper strips into parts"),
    _Row("E", "D", "Aland", _MATHS, "03", "Part", "3.NF.A.2a", "Mark one part of a whole"),
    _Row("F", "D", "Aland", _MATHS, "03", "Part", "3.NF.A.2b", "Mark several equal parts"),
    _Row("1", "", "Aland", _MATHS, "04", "Standard", "4.NF.A.1", "Draw fractions that are equal"),
    _Row("2", "", "Aland", _SCIENCE, "04", "Standard", "4-PS3-1", "Roll balls down a ramp"),
    _Row("3", "", "Borduria", _MATHS, "03", "Standard", "3.FR.1", "Share a cake fairly"),
    _Row("4", "", "Borduria", _SCIENCE, "05", "Standard", "5.SC.1", "Mix salt and water"),
)
_BY_ID: Final = {row.id: row for row in _ROWS}


def records() -> list[StandardRecord]:
    """Return the ten records, parents before their children."""
    return [StandardRecord.from_dict(_as_data(row)) for row in _ROWS]


def small_catalog(folder: Path) -> LocalCatalog:
    """Return an embedded catalog that is filled with the ten records when it is first used."""
    seed = SeedSource(name="ten records of the test kit", edition=lambda: "1", load=_seed)
    return LocalCatalog(folder, seed=seed)


def _seed() -> Seed:
    import numpy as np  # noqa: PLC0415  - most plugins are tested without the catalog

    # Without vectors: ten texts are soon embedded.
    return Seed(records=records(), model="", hashes=(), vectors=np.empty((0, 0), np.float32))


def _as_data(row: _Row) -> dict[str, Any]:
    ancestors = _ancestors(row)
    children = [each.id for each in _ROWS if each.parent == row.id]
    siblings = [each for each in _ROWS if row.parent and each.parent == row.parent]
    lineage = enumerate([*ancestors, row])
    return {
        "_id": _guid(row.id),
        "content": "\n".join(
            f"Depth {depth} ({each.code}): {each.text}" for depth, each in lineage
        ),
        "standard_set_id": f"{row.state}-{row.subject}-{row.grade}",
        "standard_set_title": f"{row.state}: {row.subject}, grade {int(row.grade)}",
        "subject": row.subject,
        "education_levels": [row.grade],
        "jurisdiction_id": row.state.lower(),
        "jurisdiction_title": row.state,
        "publication_status": "Published",
        "statement_notation": row.code,
        "statement_label": row.label,
        "depth": len(ancestors),
        "is_leaf": not children,
        "is_root": not ancestors,
        "parent_id": _guid(row.parent) if row.parent else None,
        "root_id": _guid((*ancestors, row)[0].id),
        "ancestor_ids": [_guid(each.id) for each in ancestors],
        "child_ids": [_guid(each) for each in children],
        "sibling_count": max(len(siblings) - 1, 0),
        "text_status": "paraphrase",
    }


def _ancestors(row: _Row) -> list[_Row]:
    """Return what stands above, the root first."""
    parent = _BY_ID.get(row.parent)
    return [*_ancestors(parent), parent] if parent else []


def _guid(identifier: str) -> str:
    return identifier * 32
