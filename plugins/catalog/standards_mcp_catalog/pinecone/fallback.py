"""Two catalogs as one: the second answers while the first is out of reach, and says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from typing_extensions import override

from standards_mcp.filters import FilterExpression
from standards_mcp_catalog.base import (
    Catalog,
    CatalogStats,
    Facets,
    FieldValues,
    SearchResult,
    StandardSets,
)
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import KINDS, StatedRelation

from .client import PineconeClient
from .errors import PineconeUnavailableError

log = logging.getLogger(__name__)

PAUSE: Final = 30.0
"""Seconds for which an unreachable Pinecone is not asked again."""
_T = TypeVar("_T")


class FallbackCatalog(Catalog):
    """Reads from Pinecone, and from *secondary* while that does not answer.

    Only trouble that passes is bridged: a wrong key or a missing index is an error, since it
    would otherwise stay unnoticed. Writing always goes to Pinecone.

    Args:
        pause: Seconds after a failure in which Pinecone is not asked, so that not every search
            has to wait for its deadline.
    """

    def __init__(
        self, primary: PineconeClient, secondary: Catalog, *, pause: float = PAUSE
    ) -> None:
        self.primary = primary
        self.secondary = secondary
        self._pause = pause
        self._failure: PineconeUnavailableError | None = None
        self._asked_again_at = 0.0

    async def search(
        self,
        query_text: str,
        top_k: int = 5,
        filter: FilterExpression | None = None,  # noqa: A002
    ) -> SearchResult:
        """Return the *top_k* best records for a text; a note says where another store answered."""
        result, notes = await self._ask_with_notes(
            lambda catalog: catalog.search(query_text, top_k, filter)
        )
        return replace(result, notes=(*notes, *result.notes))

    @override
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        return await self._ask(lambda catalog: catalog.fetch(ids))

    @override
    async def find(self, identifier: str) -> list[StandardRecord]:
        return await self._ask(lambda catalog: catalog.find(identifier))

    @override
    async def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        return await self._ask(lambda catalog: catalog.find_all(identifiers))

    @override
    async def relations(
        self, records: Sequence[StandardRecord], kinds: Collection[str] = KINDS, limit: int = 50
    ) -> list[tuple[StatedRelation, ...]]:
        # Without relations Pinecone is not asked, which must not look as if it answered again.
        if self._failure is not None:
            return await self.secondary.relations(records, kinds, limit)
        return await self._ask(lambda catalog: catalog.relations(records, kinds, limit))

    @override
    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        return await self._ask(lambda catalog: catalog.suggest(identifier, limit))

    @override
    async def select(self, filter: FilterExpression, limit: int) -> list[StandardRecord]:
        return await self._ask(lambda catalog: catalog.select(filter, limit))

    @override
    async def sets(self) -> StandardSets:
        return await self._ask(lambda catalog: catalog.sets())

    @override
    async def facets(self) -> Facets:
        return await self._ask(lambda catalog: catalog.facets())

    @override
    async def values(self, name: str) -> FieldValues:
        return await self._ask(lambda catalog: catalog.values(name))

    async def stats(self) -> CatalogStats:
        """Return what Pinecone holds, or the secondary and why it answers."""
        stats, notes = await self._ask_with_notes(lambda catalog: catalog.stats())
        reason = {"fallback": notes[0]} if notes else {}
        return replace(stats, details={**reason, **stats.details})

    def notes(self) -> tuple[str, ...]:
        """Return that the secondary answers, as long as it does."""
        if self._failure is None:
            return ()
        return (f"Answered from the embedded index, because of Pinecone: {self._failure}",)

    async def check(self) -> tuple[str, ...]:
        """Try Pinecone, or the secondary if that would have to answer."""
        found, notes = await self._ask_with_notes(lambda catalog: catalog.check())
        return (*notes, *found)

    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        """Add or replace records in Pinecone and return how many changed."""
        return await self.primary.upsert(records)

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete records from Pinecone and return how many there were."""
        return await self.primary.delete(ids)

    async def aclose(self) -> None:
        """Release what both catalogs hold open."""
        try:
            await self.primary.aclose()
        finally:
            await self.secondary.aclose()

    async def _ask(self, call: Callable[[Catalog], Awaitable[_T]]) -> _T:
        answer, _ = await self._ask_with_notes(call)
        return answer

    async def _ask_with_notes(
        self, call: Callable[[Catalog], Awaitable[_T]]
    ) -> tuple[_T, tuple[str, ...]]:
        """Return what one of the catalogs answers, and the note that says so of the second."""
        if self._failure is None or time.monotonic() >= self._asked_again_at:
            try:
                answer = await call(self.primary)
            except PineconeUnavailableError as error:
                if not error.is_temporary:
                    raise
                self._failure = error
                self._asked_again_at = time.monotonic() + self._pause
                log.warning("the embedded index answers in place of Pinecone: %s", error)
            else:
                self._failure = None
                return answer, ()
        notes = self.notes()  # before another call, which may be answered by Pinecone
        return await call(self.secondary), notes
