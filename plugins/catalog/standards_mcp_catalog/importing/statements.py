"""Statements of crosswalks, and the loaded standards that their codes mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import KINDS, Crosswalk, Link, link, parse_kind
from standards_mcp_catalog.vocabulary.names import jurisdictions_named
from standards_mcp_catalog.vocabulary.notation import identifier_key, spelled_keys
from standards_mcp_catalog.vocabulary.readings import codes_of_places

from .report import Problem, lost

if TYPE_CHECKING:
    from standards_mcp_catalog.local.store import LocalStore

    from .staging import Staging

_REMEMBERED: Final = 10_000
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One relation of a crosswalk, as it is written.

    Attributes:
        source: The name of the document.
        where: The line in it.
        by_identifier: True if the ends are identifiers, which need not be loaded.
        adds: See `CrosswalkLinks`.
    """

    crosswalk: Crosswalk
    start: str
    relation: str
    end: str
    source: str
    where: str
    by_identifier: bool = False
    adds: bool = False


Item: TypeAlias = StandardRecord | Problem | Statement | Crosswalk
"""Items that readers yield.

A `Crosswalk` marks a document that contains all relations of this crosswalk, possibly none.
"""


def settle(staging: Staging, store: LocalStore, deleted: Collection[str] = ()) -> Iterator[Problem]:
    """Turn the statements in *staging* into links between standards, and keep them there.

    Args:
        deleted: The ids of standards in *store* that the import deletes; no code means them.

    Yields:
        A problem for each statement that cannot be taken. A code that several standards have is
        one: which of them is meant is not guessed.

    Raises:
        CatalogError: The store cannot be read.
    """
    staging.index_keys()
    named = lru_cache(_REMEMBERED)(_CodeLookup(staging, store, deleted).named)
    for statement in staging.statements():
        settled = _settled(statement, named)
        if isinstance(settled, Problem):
            yield settled
        else:
            staging.add_link(statement.crosswalk, settled, adds=statement.adds)


class _CodeLookup:
    """Find standards by code or id, in the import and in the store."""

    def __init__(self, staging: Staging, store: LocalStore, deleted: Collection[str]) -> None:
        self._staging, self._store, self._deleted = staging, store, deleted

    def named(self, text: str) -> list[str]:
        """Return the ids of *text*, or else of the code after the name of a place."""
        if found := self._spelled(text):
            return found
        for reading in codes_of_places(text):
            ids = self._spelled(reading.code)
            records = (*self._store.fetch(ids), *self._staging.selected(ids))
            titles = {each.id: each.jurisdiction_title for each in records}
            meant = {
                title
                for place in reading.places
                for title in jurisdictions_named(place, {*titles.values()})
            }
            if found := [id_ for id_ in ids if titles[id_] in meant]:
                return found
        return []

    def _spelled(self, text: str) -> list[str]:
        for key in spelled_keys(text):
            found = {*self._store.ids_under(key), *self._staging.ids_under(key)}
            if found := found.difference(self._deleted):
                return sorted(found)
        return []


def _settled(statement: Statement, named: Callable[[str], Sequence[str]]) -> Link | Problem:
    kind = parse_kind(statement.relation)
    if kind is None:
        detail = f"{statement.relation[:80]!r}; understood are {', '.join(KINDS)}"
        return _lost(statement, "unknown relation", detail)
    ends = [statement.start, statement.end]
    if not statement.by_identifier:
        for each in ends:
            if len(found := named(each)) != 1:
                return _unclear(statement, each, found)
        ends = [named(each)[0] for each in ends]
    start, end = (identifier_key(each) or "" for each in ends)
    if start == end:
        return _lost(statement, "related to itself", repr(statement.start[:80]))
    return link(start, kind, end)


def _unclear(statement: Statement, text: str, ids: Sequence[str]) -> Problem:
    if not text:
        return _lost(statement, "code missing", "a row has two codes or ids and a relation")
    if not ids:
        detail = f"{text[:80]!r} is not loaded; import its standards first"
        return _lost(statement, "unknown code", detail)
    shown = ", ".join(ids[:_SHOWN]) + (", ..." if len(ids) > _SHOWN else "")
    detail = f"{len(ids)} standards have {text[:80]!r}; give one of their ids: {shown}"
    return _lost(statement, "ambiguous code", detail)


def _lost(statement: Statement, reason: str, detail: str) -> Problem:
    return lost(reason, statement.source, statement.where, detail, records=0)
