"""The associations of a CASE package: who stands under whom, and what belongs together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .values import Fields

_SYMMETRIC: Final = ("exactMatchOf", "isPeerOf", "isRelatedTo", "isTranslationOf")


class Parent(NamedTuple):
    """A parent, and where the child stands among its children."""

    order: float
    id: str


@dataclass(frozen=True, slots=True)
class Links:
    """What the associations say about the items of one package, by their identifiers.

    Attributes:
        parents: The parents of an item, that of the lowest sequence number first.
        crosswalk: Other items, by the kind of the link in snake case, such as ``replaced_by``.
    """

    document_id: str
    parents: Mapping[str, Sequence[Parent]]
    crosswalk: Mapping[str, Mapping[str, list[str]]]


def read_links(package: Fields, document_id: str) -> Links:
    """Return the associations of *package*. Only ``isChildOf`` makes the tree.

    Its origin is the child, and its destination the parent: an item, or the document for a root.
    """
    parents: defaultdict[str, list[Parent]] = defaultdict(list)
    crosswalk: defaultdict[str, defaultdict[str, list[str]]]
    crosswalk = defaultdict(lambda: defaultdict(list))
    for number, link in enumerate(package.parts("CFAssociations")):
        origin, destination = _node_id(link, "originNodeURI"), _node_id(link, "destinationNodeURI")
        kind = link.text("associationType")
        if not (origin and destination and kind):
            link.note("association without ends or type", f"number {number + 1}")
        elif kind == "isChildOf":
            order = link.number("sequenceNumber", float("inf"))
            parents[origin].append(Parent(order, destination))
        else:
            crosswalk[origin][_snake(kind)].append(destination)
            if kind in _SYMMETRIC:
                crosswalk[destination][_snake(kind)].append(origin)
    for found in parents.values():
        found.sort(key=lambda parent: parent.order)
    unique = {
        id_: {kind: list(dict.fromkeys(ids)) for kind, ids in kinds.items()}
        for id_, kinds in crosswalk.items()
    }
    return Links(document_id, parents, unique)


def _node_id(link: Fields, name: str) -> str:
    """Return the identifier at one end of a link, which some write as a bare URI."""
    if isinstance(link.data.get(name), str):
        return link.text(name).rpartition("/")[2].lower()
    return identifier(link.part(name))


def identifier(fields: Fields) -> str:
    """Return the identifier of a CASE object, or what its URI ends in, lower-case."""
    return (fields.text("identifier") or fields.text("uri").rpartition("/")[2]).lower()


def _snake(kind: str) -> str:
    """Return ``exact_match_of`` for ``exactMatchOf``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind)
    return re.sub(r"\W+", "_", words).strip("_").lower() or "related"
