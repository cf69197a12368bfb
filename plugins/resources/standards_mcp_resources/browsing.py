"""List one level of the tree: jurisdictions, sets, the roots of a set, or children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, cast

from standards_mcp import InvalidInputError
from standards_mcp_catalog import Catalog, StandardRecord, StandardSet
from standards_mcp_catalog.results import StandardSets
from standards_mcp_catalog.vocabulary.names import titles_with

from .answers import Level, Node
from .envelope import answer, standard_node
from .names import (
    checked_identifier,
    name_of,
    namesakes,
    not_found_error,
    sets_named,
    sets_of_jurisdiction,
)
from .tree import children_of, roots_of_set, under_code

PAGE: Final = 50
_BROWSE: Final = "Call browse_standards with parent = the _id or code of one that has children."
_DETAILS: Final = "get_standard_details tells all about one."
_Listing: TypeAlias = tuple[list[Node], str]
"""The nodes of an answer, and its message."""
_INCOMPLETE_NOTE: Final = "There are more sets than this index can list; any set opens by its id."


async def browse(catalog: Catalog, parent: str, page: int) -> Level:
    """Return one page of the children of *parent*, or of the jurisdictions if it is blank.

    Raises:
        NotFoundError: Nothing in the catalog is called *parent*.
        InvalidInputError: The page does not exist.
        CatalogError: The catalog cannot be read.
    """
    index = await catalog.sets()
    nodes, message = await _below(catalog, index, parent)
    first = (page - 1) * PAGE
    if page > 1 and first >= len(nodes):
        raise InvalidInputError(f"page is {page}; the last one is {-(-len(nodes) // PAGE) or 1}")
    shown = nodes[first : first + PAGE]
    has_more = first + PAGE < len(nodes)
    if len(shown) < len(nodes):
        more = f" Call again with page = {page + 1}." if has_more else ""
        message += f" These are {first + 1} to {first + len(shown)}.{more}"
    notes = (*(() if index.complete else (_INCOMPLETE_NOTE,)), *catalog.notes())
    level = cast("Level", answer(shown, message, notes))
    if has_more:
        level["next_page"] = page + 1
    return level


async def _below(catalog: Catalog, index: StandardSets, parent: str) -> _Listing:
    if not parent.strip():
        return _jurisdictions(index)
    text = checked_identifier(parent, "parent")
    shown = await _named_item(catalog, index, text) or await _partial_matches(catalog, index, text)
    if shown is None:
        raise await not_found_error(catalog, text, index.sets)
    return shown


async def _named_item(catalog: Catalog, index: StandardSets, text: str) -> _Listing | None:
    """Return the children of the item with this name, code or id, or all sets with this title."""
    if found := sets_named(text, index.sets):
        if len(found) == 1:
            return await _set_contents(catalog, found[0])
        return _sets(found, f"{len(found)} sets are called {text!r}", counted=index.counted)
    if found := sets_of_jurisdiction(text, index.sets):
        summary = f"{_count(len(found), 'set')} of {found[0].jurisdiction_title}"
        return _sets(found, summary, counted=index.counted)
    if matches := await catalog.find(text):
        return await _children(catalog, matches)
    if roots := await roots_of_set(catalog, text):  # a set that the catalog does not list
        return _roots(roots, f"the set {text}")
    return None


async def _partial_matches(catalog: Catalog, index: StandardSets, text: str) -> _Listing | None:
    """Return the standards whose codes begin with a text, or the sets with it in their titles."""
    if under := await under_code(catalog, text):
        count = _count(len(under), "standard")
        nodes = _with_jurisdictions([standard_node(each) for each in under], under)
        return (
            nodes,
            f"{count} with codes that begin with {text}. {_BROWSE} {_DETAILS}",
        )
    titles = set(titles_with(text, (each.title for each in index.sets)))
    if found := [each for each in index.sets if each.title in titles]:
        summary = f"{_count(len(found), 'set')} with {text!r} in the title"
        return _sets(found, summary, counted=index.counted)
    return None


def _jurisdictions(index: StandardSets) -> _Listing:
    nodes: dict[str, Node] = {}
    for each in index.sets:
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
        if index.counted:
            node["standards"] = node.get("standards", 0) + each.records
    if not nodes:
        return (
            [],
            "The catalog is empty. The administrator fills it with `standards-mcp data import`.",
        )
    count = _count(len(nodes), "jurisdiction")
    return list(nodes.values()), (
        f"{count} with standards. Call browse_standards with parent = the _id or name of one for "
        "its standard sets."
    )


def _sets(sets: Sequence[StandardSet], summary: str, *, counted: bool) -> _Listing:
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
    return _with_jurisdictions(nodes, sets), f"{summary}. {advice}"


def _with_jurisdictions(
    nodes: list[Node], items: Sequence[StandardRecord | StandardSet]
) -> list[Node]:
    """Add the jurisdictions to the nodes of *items*, if there are several jurisdictions."""
    if len({each.jurisdiction_id for each in items}) > 1:
        for node, item in zip(nodes, items, strict=True):
            node["jurisdiction_title"] = item.jurisdiction_title
    return nodes


async def _set_contents(catalog: Catalog, item: StandardSet) -> _Listing:
    return _roots(await roots_of_set(catalog, item.id), item.title)


def _roots(roots: Sequence[StandardRecord], title: str) -> _Listing:
    nodes = [standard_node(each) for each in roots]
    return nodes, f"{len(nodes)} at the top of {title}. {_BROWSE} {_DETAILS}"


async def _children(catalog: Catalog, matches: Sequence[StandardRecord]) -> _Listing:
    record, *others = matches
    nodes = [standard_node(each) for each in await children_of(catalog, record)]
    what = f"{name_of(record)} ({record.jurisdiction_title})"
    first = (
        f"{_count(len(nodes), 'part')} of {what}, in order." if nodes else f"{what} has no parts."
    )
    return nodes, " ".join(filter(None, (first, namesakes(others), _DETAILS)))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
