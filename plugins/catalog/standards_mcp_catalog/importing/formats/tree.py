"""Build trees of records from nodes that name their parents.

Public data has missing parents, cycles and duplicate ids. Every node with a text still becomes one
record.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from standards_mcp_catalog.importing.report import Problem, lost, note
from standards_mcp_catalog.records import StandardRecord

# A record repeats its ancestors, so a chain of n nodes takes n² space. Real trees have six levels.
DEEPEST: Final = 64
"""Nodes below this depth become roots, so that the size of a tree stays in proportion."""
LONGEST_ANCESTOR: Final = 4_000
"""Most characters of an ancestor's text that the content of a record repeats."""

SetFields: TypeAlias = Callable[[tuple[str, ...]], Mapping[str, Any]]
"""Returns the fields of the set to which records with these education levels belong."""


@dataclass(slots=True, kw_only=True)  # frozen ones take four times as long to make
class Node:
    """One standard or heading, before its place is known.

    Attributes:
        parents: Candidates for the parent's id, the best first; empty for a root.
        order: Sort key among its siblings; nodes with equal keys keep their order.
        levels: Education levels; a node without any has the levels of its parent.
        fields: More fields of the record.
        where: The node's name in problems, such as its line; by default its id and notation.
    """

    id: str
    description: str
    notation: str = ""
    parents: tuple[str, ...] = ()
    order: float = 0
    levels: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: str = ""

    @property
    def name(self) -> str:
        """The node's name in problems."""
        return self.where or (f"{self.id} ({self.notation})" if self.notation else self.id)


class _Ancestry(NamedTuple):
    """The ancestors of a node, from the root to its parent.

    Attributes:
        lines: The lines for the ancestors in the content of a record.
        levels: The education levels of the parent.
    """

    ancestors: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


_NO_ANCESTORS: Final = _Ancestry()


def build_tree(
    nodes: Iterable[Node], set_fields: SetFields, source: str
) -> Iterator[StandardRecord | Problem]:
    """Yield a record for each node, parents before their children, and every problem.

    Args:
        set_fields: Returns the fields that the records of one set share.
        source: The name of the document, for problems.
    """
    problems: list[Problem] = []
    known = _unique(nodes, source, problems)
    parents = _parents(known, source, problems)
    children = _drop_empty(known, parents, source, problems)
    yield from problems
    ancestries: dict[str, _Ancestry] = {}
    pending = list(reversed(children.get(None, ())))
    while pending:
        node = known[pending.pop()]
        above = ancestries.get(parents[node.id] or "", _NO_ANCESTORS)
        if below := children.get(node.id):
            ancestries[node.id] = _ancestry_below(above, node)
            pending += reversed(below)
        data = _fields(node, above, children, set_fields(node.levels or above.levels))
        yield _record(data, source, node)


def _unique(nodes: Iterable[Node], source: str, problems: list[Problem]) -> dict[str, Node]:
    known: dict[str, Node] = {}
    for node in nodes:
        if node.id not in known:
            known[node.id] = node
        else:
            first = known[node.id].where
            detail = f"the first was read, {first}" if first else "the first was read"
            problems.append(lost("id occurs twice in one set", source, node.name, detail))
    ordered = sorted(known.values(), key=lambda node: node.order)
    return {node.id: node for node in ordered}


def _parents(
    known: Mapping[str, Node], source: str, problems: list[Problem]
) -> dict[str, str | None]:
    parents: dict[str, str | None] = {}
    for node in known.values():
        parents[node.id] = next((id_ for id_ in node.parents if id_ in known), None)
        if node.parents and parents[node.id] != node.parents[0]:
            detail = f"no {node.parents[0]!r} in this set"
            problems.append(note("unknown parent", source, node.name, detail))
    detail = f"it is its own ancestor, or deeper than {DEEPEST} levels; now it is a root"
    cut = _break_cycles(parents)
    problems += [note("cycle broken", source, known[id_].name, detail) for id_ in cut]
    return parents


def _break_cycles(parents: dict[str, str | None]) -> Iterator[str]:
    """Make a root of one node of each cycle, and of nodes that are too deep, and yield them."""
    depths: dict[str | None, int] = {None: -1}
    for start in parents:
        path: dict[str, None] = {}
        id_: str | None = start
        while id_ is not None and id_ not in depths and id_ not in path:
            path[id_] = None
            id_ = parents[id_]
        if id_ is not None and id_ in path:
            parents[id_] = None
            path[id_] = path.pop(id_)  # the others of the cycle are below it
            yield id_
        for each in reversed(path):
            if depths[parents[each]] == DEEPEST:
                parents[each] = None
                yield each
            depths[each] = depths[parents[each]] + 1


_Children: TypeAlias = Mapping[str | None, Sequence[str]]


def _drop_empty(
    known: dict[str, Node], parents: dict[str, str | None], source: str, problems: list[Problem]
) -> _Children:
    """Drop nodes without text and children, and return the children of each node."""
    order, children = list[str](), _children(parents)
    order += children.get(None, ())
    for id_ in order:
        order += children.get(id_, ())
    below = Counter(parents.values())
    for id_ in reversed(order):
        node = known[id_]
        if node.description:
            continue
        if below[id_]:
            problems.append(note("heading without text", source, node.name))
        else:
            below[parents.pop(id_)] -= 1
            problems.append(lost("no text", source, node.name))
    return _children(parents)


def _children(parents: Mapping[str, str | None]) -> _Children:
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for id_, parent in parents.items():
        children[parent].append(id_)
    return children


def _ancestry_below(above: _Ancestry, node: Node) -> _Ancestry:
    """Return the ancestors of the children of a node."""
    ancestors, lines, levels = above
    text = node.description
    if len(text) > LONGEST_ANCESTOR:
        text = text[:LONGEST_ANCESTOR].rstrip() + "…"
    line = _line(len(ancestors), node.notation, text)
    return _Ancestry((*ancestors, node.id), (*lines, line), node.levels or levels)


def _line(depth: int, notation: str, text: str) -> str:
    code = f" ({notation})" if notation else ""
    return f"Depth {depth}{code}: {text}"


def _fields(
    node: Node, above: _Ancestry, children: _Children, set_fields: Mapping[str, Any]
) -> dict[str, Any]:
    ancestors, lines, levels = above
    below = tuple(children.get(node.id, ()))
    return {
        **set_fields,
        **node.fields,
        "_id": node.id,
        "content": "\n".join((*lines, _line(len(ancestors), node.notation, node.description))),
        "description": node.description,
        "statement_notation": node.notation or None,
        "education_levels": node.levels or levels,
        "depth": len(ancestors),
        "is_leaf": not below,
        "is_root": not ancestors,
        "parent_id": ancestors[-1] if ancestors else None,
        "root_id": ancestors[0] if ancestors else node.id,
        "ancestor_ids": ancestors,
        "child_ids": below,
        "sibling_count": len(children[ancestors[-1]]) - 1 if ancestors else 0,
    }


def _record(data: Mapping[str, Any], source: str, node: Node) -> StandardRecord | Problem:
    try:
        return StandardRecord.from_dict(data)
    except ValidationError as error:
        return lost("not a valid record", source, node.name, first_error(error))


def first_error(error: ValidationError) -> str:
    """Return the first error in one line: the field and the reason."""
    first = error.errors(include_url=False, include_context=False)[0]
    field_name = ".".join(map(str, first["loc"]))
    return f"{field_name}: {first['msg']}"
