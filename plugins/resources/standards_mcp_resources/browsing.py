"""One step down the tree: from nothing to jurisdictions, sets, roots and children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from standards_mcp import Catalog, InvalidInputError, StandardRecord
from standards_mcp.catalog import StandardSet, StandardSets

from .envelope import Envelope, Node, answer, standard_node
from .names import (
    checked,
    namesakes,
    nothing_named,
    sets_named,
    sets_of_jurisdiction,
)
from .tree import children_of, roots_of_set

PAGE: Final = 50
_BELOW: Final = "Call browse_standards with parent = the _id or code of one that has children."
_DETAILS: Final = "get_standard_details tells all about one."
_INCOMPLETE: Final = "There are more sets than this index can list; any set opens by its id."


async def browse(catalog: Catalog, parent: str, page: int) -> Envelope[Node]:
    """Return one page of what stands directly below *parent*; at the top where that is blank.

    Raises:
        NotFoundError: Nothing is called *parent*.
        InvalidInputError: There is no such page.
        CatalogError: The catalog cannot be read.
    """
    known = await catalog.sets()
    nodes, message = await _below(catalog, known, parent)
    first = (page - 1) * PAGE
    if page > 1 and first >= len(nodes):
        raise InvalidInputError(f"page is {page}; the last one is {-(-len(nodes) // PAGE) or 1}")
    shown = nodes[first : first + PAGE]
    if len(shown) < len(nodes):
        more = f" Call again with page = {page + 1}." if first + PAGE < len(nodes) else ""
        message += f" These are {first + 1} to {first + len(shown)}.{more}"
    notes = (*(() if known.complete else (_INCOMPLETE,)), *catalog.notes())
    return answer(shown, message, notes)


async def _below(catalog: Catalog, known: StandardSets, parent: str) -> tuple[list[Node], str]:
    if not parent.strip():
        return _jurisdictions(known)
    text, sets = checked(parent, "parent"), known.sets
    if found := sets_named(text, sets):
        if len(found) == 1:
            return await _set_contents(catalog, found[0])
        return _sets(found, f"sets are called {text!r}", counted=known.counted)
    if found := sets_of_jurisdiction(text, sets):
        return _sets(found, f"sets of {found[0].jurisdiction_title}", counted=known.counted)
    if matches := await catalog.find(text):
        return await _children(catalog, matches)
    if roots := await roots_of_set(catalog, text):  # no record has it for its own
        return _roots(roots, f"the set {text}")
    raise await nothing_named(catalog, text)


def _jurisdictions(known: StandardSets) -> tuple[list[Node], str]:
    nodes: dict[str, Node] = {}
    for each in known.sets:
        node = nodes.setdefault(
            each.jurisdiction_id,
            {
                "_id": each.jurisdiction_id,
                "kind": "jurisdiction",
                "description": each.jurisdiction_title,
                "children": 0,
            },
        )
        node["children"] = node.get("children", 0) + 1
        if known.counted:
            node["standards"] = node.get("standards", 0) + each.records
    if not nodes:
        return (
            [],
            "There are no standards here. The administrator runs `standards-mcp data import`.",
        )
    count = _count(len(nodes), "jurisdiction")
    return list(nodes.values()), (
        f"{count} with standards. Call browse_standards with parent = the _id or name of one for "
        "its standard sets."
    )


def _sets(sets: Sequence[StandardSet], what: str, *, counted: bool) -> tuple[list[Node], str]:
    nodes = list[Node]()
    for each in sets:
        node: Node = {
            "_id": each.id,
            "kind": "set",
            "description": each.title,
            "subject": each.subject,
        }
        if counted:
            node["standards"] = each.records
        nodes.append(node)
    advice = "Call browse_standards with parent = the _id of one for its standards."
    return nodes, f"{len(sets)} {what}. {advice}"


async def _set_contents(catalog: Catalog, item: StandardSet) -> tuple[list[Node], str]:
    return _roots(await roots_of_set(catalog, item.id), item.title)


def _roots(roots: Sequence[StandardRecord], title: str) -> tuple[list[Node], str]:
    nodes = [standard_node(each) for each in roots]
    return nodes, f"{len(nodes)} at the top of {title}. {_BELOW} {_DETAILS}"


async def _children(catalog: Catalog, matches: Sequence[StandardRecord]) -> tuple[list[Node], str]:
    record, *others = matches
    nodes = [standard_node(each) for each in await children_of(catalog, record)]
    what = f"{record.statement_notation or record.id} ({record.jurisdiction_title})"
    first = (
        f"{_count(len(nodes), 'part')} of {what}, in order."
        if nodes
        else (f"{what} has no parts: nothing stands below it.")
    )
    return nodes, " ".join(filter(None, (first, namesakes(others), _DETAILS)))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
