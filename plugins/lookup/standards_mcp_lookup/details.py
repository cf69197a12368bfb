"""Describe standards with their ancestors, children and siblings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import TypedDict

from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.relations import Retirement

SEARCH_ADVICE = "Try using find_relevant_standards with a keyword search instead."


class Relative(TypedDict):
    """An ancestor, a child or a sibling of a standard."""

    _id: str
    statement_notation: str | None
    description: str


async def describe(
    catalog: Catalog,
    records: Iterable[StandardRecord],
    retired: Mapping[str, Retirement],
) -> list[dict[str, Any]]:
    """Return all fields of each record with its ancestors, children and siblings.

    Args:
        retired: Retirements, by the ids of the retired records.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    matches = list(records)
    parents = await _fetch(catalog, [record.parent_id for record in matches])
    relatives: dict[str, StandardRecord] = dict(parents)
    wanted = [
        identifier
        for record in matches
        for identifier in (
            *record.ancestor_ids,
            *record.child_ids,
            *_sibling_ids(record, parents),
        )
        if identifier not in relatives
    ]
    relatives |= await _fetch(catalog, wanted)
    return [
        {
            **record.to_dict(),
            **_core_idea(record),
            **({"retired": retired[record.id].to_dict()} if record.id in retired else {}),
            "ancestors": _relatives(record.ancestor_ids, relatives),
            "children": _relatives(record.child_ids, relatives),
            "siblings": _relatives(_sibling_ids(record, parents), relatives),
        }
        for record in matches
    ]


def _core_idea(record: StandardRecord) -> dict[str, str]:
    from standards_mcp_catalog.vocabulary.core_ideas import (  # noqa: PLC0415  - costs start-up time
        grades_and_idea,
        titled,
    )

    science = grades_and_idea(record.statement_notation or "")
    return {"core_idea": titled(science[1])} if science else {}


async def _fetch(catalog: Catalog, ids: Iterable[str | None]) -> dict[str, StandardRecord]:
    unique = list(dict.fromkeys(identifier for identifier in ids if identifier))
    return {record.id: record for record in await catalog.fetch(unique)} if unique else {}


def _sibling_ids(record: StandardRecord, parents: Mapping[str, StandardRecord]) -> list[str]:
    parent = parents.get(record.parent_id or "")
    return [child for child in parent.child_ids if child != record.id] if parent else []


def _relatives(ids: Iterable[str], relatives: Mapping[str, StandardRecord]) -> list[Relative]:
    return [
        {
            "_id": identifier,
            "statement_notation": relatives[identifier].statement_notation,
            "description": relatives[identifier].description,
        }
        for identifier in ids
        if identifier in relatives
    ]
