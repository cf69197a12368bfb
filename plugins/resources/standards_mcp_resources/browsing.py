"""One step down the tree: from nothing to jurisdictions, sets, roots and children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from standards_mcp import InvalidInputError
from standards_mcp_catalog import Catalog, StandardRecord, StandardSet
from standards_mcp_catalog.base import StandardSets
from standards_mcp_catalog.vocabulary.names import titles_with

from .envelope import Envelope, Node, answer, standard_node
from .names import (
    checked,
    name_of,
    namesakes,
    nothing_named,
    sets_named,
    sets_of_jurisdiction,
)
from .tree import children_of, roots_of_set, under_code

PAGE: Final = 50
_BELOW: Final = "Call browse_standards with parent = the _id or code of one that has children."
_DETAILS: Final = "get_standard_details tells all about one."
_Shown: TypeAlias = tuple[list[Node], str]
"""What is shown, and the message with it."""
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


async def _below(catalog: Catalog, known: StandardSets, parent: str) -> _Shown:
    if not parent.strip():
        return _jurisdictions(known)
    text = checked(parent, "parent")
    shown = await _named(catalog, known, text) or await _resembling(catalog, known, text)
    if shown is None:
        raise await nothing_named(catalog, text, known.sets)
    return shown


async def _named(catalog: Catalog, known: StandardSets, text: str) -> _Shown | None:
    """Return what stands below the one thing, or the several, of this name, code or id."""
    if found := sets_named(text, known.sets):
        if len(found) == 1:
            return await _set_contents(catalog, found[0])
        return _sets(found, f"{len(found)} sets are called {text!r}", counted=known.counted)
    if found := sets_of_jurisdiction(text, known.sets):
        told = f"{_count(len(found), 'set')} of {found[0].jurisdiction_title}"
        return _sets(found, told, counted=known.counted)
    if matches := await catalog.find(text):
        return await _children(catalog, matches)
    if roots := await roots_of_set(catalog, text):  # no record has it for its own
        return _roots(roots, f"the set {text}")
    return None


async def _resembling(catalog: Catalog, known: StandardSets, text: str) -> _Shown | None:
    """Return what has the text in its code or its title, where nothing is called so itself."""
    if under := await under_code(catalog, text):
        count = _count(len(under), "standard")
        nodes = _told_apart([standard_node(each) for each in under], under)
        return nodes, f"{count} with codes that begin with {text}. {_BELOW} {_DETAILS}"
    titles = set(titles_with(text, (each.title for each in known.sets)))
    if found := [each for each in known.sets if each.title in titles]:
        told = f"{_count(len(found), 'set')} with {text!r} in the title"
        return _sets(found, told, counted=known.counted)
    return None


def _jurisdictions(known: StandardSets) -> _Shown:
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


def _sets(sets: Sequence[StandardSet], told: str, *, counted: bool) -> _Shown:
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
    return _told_apart(nodes, sets), f"{told}. {advice}"


def _told_apart(nodes: list[Node], items: Sequence[StandardRecord | StandardSet]) -> list[Node]:
    """Return the nodes of *items*, with their jurisdictions where these are several."""
    if len({each.jurisdiction_id for each in items}) > 1:
        for node, item in zip(nodes, items, strict=True):
            node["jurisdiction_title"] = item.jurisdiction_title
    return nodes


async def _set_contents(catalog: Catalog, item: StandardSet) -> _Shown:
    return _roots(await roots_of_set(catalog, item.id), item.title)


def _roots(roots: Sequence[StandardRecord], title: str) -> _Shown:
    nodes = [standard_node(each) for each in roots]
    return nodes, f"{len(nodes)} at the top of {title}. {_BELOW} {_DETAILS}"


async def _children(catalog: Catalog, matches: Sequence[StandardRecord]) -> _Shown:
    record, *others = matches
    nodes = [standard_node(each) for each in await children_of(catalog, record)]
    what = f"{name_of(record)} ({record.jurisdiction_title})"
    first = (
        f"{_count(len(nodes), 'part')} of {what}, in order."
        if nodes
        else (f"{what} has no parts: nothing stands below it.")
    )
    return nodes, " ".join(filter(None, (first, namesakes(others), _DETAILS)))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
