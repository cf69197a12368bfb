"""Read standards in the order of their tree: parents first, and children as in the source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from standards_mcp import FilterExpression
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.records import depth_first
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key

MAX_STANDARDS: Final = 2_000
"""Maximum number of standards to read of one set or tree."""


async def children_of(catalog: Catalog, record: StandardRecord) -> list[StandardRecord]:
    """Return the children of a standard in their order."""
    return await catalog.fetch(record.child_ids) if record.child_ids else []


async def roots_of_set(catalog: Catalog, set_id: str) -> list[StandardRecord]:
    """Return the roots of a set, in the order of their codes."""
    roots = await catalog.select({"$and": [_in_set(set_id), {"is_root": True}]}, MAX_STANDARDS)
    return _by_code(roots or _topmost(await catalog.select(_in_set(set_id), MAX_STANDARDS)))


async def under_code(catalog: Catalog, prefix: str) -> list[StandardRecord]:
    """Return the topmost standards whose codes begin with *prefix*, in the order of the codes."""
    key = canonical_key(prefix)
    found = await catalog.select({PREFIXES_FIELD: key}, MAX_STANDARDS) if key else []
    return _by_code(_topmost(found))


async def outline_of_set(catalog: Catalog, set_id: str) -> list[StandardRecord]:
    """Return at most `MAX_STANDARDS` standards of a set, each followed by its subtree."""
    members = await catalog.select(_in_set(set_id), MAX_STANDARDS)
    by_id = {each.id: each for each in members}
    # All members again, so that standards which no parent lists come at the end.
    return depth_first([*_by_code(_topmost(members)), *_by_code(members)], by_id)


async def outline_below(catalog: Catalog, root: StandardRecord) -> list[StandardRecord]:
    """Return a standard and all below it, each followed by its children.

    The depth is cut at the first level that reaches `MAX_STANDARDS` standards in total.
    """
    by_id = {root.id: root}
    level: Sequence[StandardRecord] = [root]
    while level and len(by_id) < MAX_STANDARDS:
        wanted = dict.fromkeys(id_ for each in level for id_ in each.child_ids if id_ not in by_id)
        level = await catalog.fetch(list(wanted)) if wanted else ()
        by_id |= {each.id: each for each in level}
    return depth_first([root], by_id)


async def siblings_of(catalog: Catalog, record: StandardRecord) -> list[StandardRecord]:
    """Return the other children of the parent, or, for a root, the other roots of its set."""
    if record.parent_id and (parents := await catalog.fetch([record.parent_id])):
        family = await children_of(catalog, parents[0])
    else:
        family = await roots_of_set(catalog, record.standard_set_id)
    return [each for each in family if each.id != record.id]


def code_order(code: str | None) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Return a sort key that puts ``3.NF.10`` after ``3.NF.9``, and standards without code last."""
    parts = re.findall(r"\d+|\D+", code or "")
    ordered = [(not each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in parts]
    return code is None, ordered


def _in_set(set_id: str) -> FilterExpression:
    # A standard in several sets has a main set and others.
    alternatives: list[dict[str, Any]] = [
        {"standard_set_id": set_id},
        {"also_in_set_ids": set_id},
    ]
    return {"$or": alternatives}


def _topmost(members: Iterable[StandardRecord]) -> list[StandardRecord]:
    by_id = {each.id: each for each in members}
    return [each for each in by_id.values() if each.parent_id not in by_id]


def _by_code(records: Iterable[StandardRecord]) -> list[StandardRecord]:
    return sorted(records, key=lambda each: code_order(each.statement_notation))
