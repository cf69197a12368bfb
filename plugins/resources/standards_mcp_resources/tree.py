"""Standards in the order of their tree: parents before their children, as the source has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from standards_mcp import FilterExpression
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key

MOST: Final = 2_000
"""The most standards of one set or one tree that are read."""


async def children_of(catalog: Catalog, record: StandardRecord) -> list[StandardRecord]:
    """Return the children of a standard in their order."""
    return await catalog.fetch(record.child_ids) if record.child_ids else []


async def roots_of_set(catalog: Catalog, set_id: str) -> list[StandardRecord]:
    """Return what stands at the top of a set, in the order of the codes."""
    roots = await catalog.select({"$and": [_members(set_id), {"is_root": True}]}, MOST)
    return _by_code(roots or _tops(await catalog.select(_members(set_id), MOST)))


async def under_code(catalog: Catalog, prefix: str) -> list[StandardRecord]:
    """Return the topmost standards whose codes begin with *prefix*, in the order of the codes."""
    key = canonical_key(prefix)
    found = await catalog.select({PREFIXES_FIELD: key}, MOST) if key else []
    return _by_code(_tops(found))


async def outline_of_set(catalog: Catalog, set_id: str) -> list[StandardRecord]:
    """Return at most `MOST` standards of a set, each followed by what stands below it."""
    members = await catalog.select(_members(set_id), MOST)
    known = {each.id: each for each in members}
    # Whatever no parent names comes at the end: nothing may be lost.
    return _in_order([*_by_code(_tops(members)), *_by_code(members)], known)


async def outline_below(catalog: Catalog, root: StandardRecord) -> list[StandardRecord]:
    """Return a standard and all below it, each followed by its children; at most some `MOST`."""
    known = {root.id: root}
    level: Sequence[StandardRecord] = [root]
    while level and len(known) < MOST:
        wanted = dict.fromkeys(id_ for each in level for id_ in each.child_ids if id_ not in known)
        level = await catalog.fetch(list(wanted)) if wanted else ()
        known |= {each.id: each for each in level}
    return _in_order([root], known)


async def siblings_of(catalog: Catalog, record: StandardRecord) -> list[StandardRecord]:
    """Return the other children of the parent; of a root, the other roots of its set."""
    if record.parent_id and (parents := await catalog.fetch([record.parent_id])):
        around = await children_of(catalog, parents[0])
    else:
        around = await roots_of_set(catalog, record.standard_set_id)
    return [each for each in around if each.id != record.id]


def code_order(code: str | None) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Return what to sort codes by, so that ``3.NF.10`` stands after ``3.NF.9``; none is last."""
    parts = re.findall(r"\d+|\D+", code or "")
    ordered = [(not each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in parts]
    return code is None, ordered


def _members(set_id: str) -> FilterExpression:
    # A standard that stands in several sets has one of them for its own.
    alternatives: list[dict[str, Any]] = [
        {"standard_set_id": set_id},
        {"also_in_set_ids": set_id},
    ]
    return {"$or": alternatives}


def _tops(members: Iterable[StandardRecord]) -> list[StandardRecord]:
    known = {each.id: each for each in members}
    return [each for each in known.values() if each.parent_id not in known]


def _by_code(records: Iterable[StandardRecord]) -> list[StandardRecord]:
    return sorted(records, key=lambda each: code_order(each.statement_notation))


def _in_order(
    roots: Iterable[StandardRecord], known: Mapping[str, StandardRecord]
) -> list[StandardRecord]:
    ordered: dict[str, StandardRecord] = {}
    pending = list(reversed(list(roots)))
    while pending:
        record = pending.pop()
        if record.id not in ordered:
            ordered[record.id] = record
            pending += [known[id_] for id_ in reversed(record.child_ids) if id_ in known]
    return list(ordered.values())
