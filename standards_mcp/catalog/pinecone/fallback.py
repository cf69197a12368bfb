"""Two catalogs as one: the second answers while the first is out of reach, and says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from standards_mcp.catalog.base import (
    Catalog,
    CatalogStats,
    Facets,
    FieldValues,
    FilterExpression,
    SearchResult,
    StandardSets,
)
from standards_mcp.catalog.records import StandardRecord

from .client import PineconeClient
from .errors import PineconeUnavailableError

log = logging.getLogger(__name__)

PAUSE: Final = 30.0
"""Seconds for which an unreachable Pinecone is not asked again."""
_T = TypeVar("_T")


class FallbackCatalog:
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
        notes = list[str]()

        async def instead() -> SearchResult:
            notes.append(self._note())
            return await self.secondary.search(query_text, top_k, filter)

        result = await self._ask(lambda: self.primary.search(query_text, top_k, filter), instead)
        return replace(result, notes=(*notes, *result.notes))

    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""
        return await self._ask(lambda: self.primary.fetch(ids), lambda: self.secondary.fetch(ids))

    async def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that an id, a URI or a notation names, best first."""
        return await self._ask(
            lambda: self.primary.find(identifier), lambda: self.secondary.find(identifier)
        )

    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records whose notation is nearest to one that `find` did not know."""
        return await self._ask(
            lambda: self.primary.suggest(identifier, limit),
            lambda: self.secondary.suggest(identifier, limit),
        )

    async def select(self, filter: FilterExpression, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return the records that a filter lets through, in the order of their ids."""
        return await self._ask(
            lambda: self.primary.select(filter, limit),
            lambda: self.secondary.select(filter, limit),
        )

    async def sets(self) -> StandardSets:
        """Return the standard sets."""
        return await self._ask(self.primary.sets, self.secondary.sets)

    async def facets(self) -> Facets:
        """Return the values that the catalog really holds."""
        return await self._ask(self.primary.facets, self.secondary.facets)

    async def values(self, name: str) -> FieldValues:
        """Return the texts that a field has, which a filter may ask for."""
        return await self._ask(
            lambda: self.primary.values(name), lambda: self.secondary.values(name)
        )

    async def stats(self) -> CatalogStats:
        """Return what Pinecone holds, or the secondary and why it answers."""

        async def instead() -> CatalogStats:
            stats = await self.secondary.stats()
            return replace(stats, details={"fallback": self._note(), **stats.details})

        return await self._ask(self.primary.stats, instead)

    def notes(self) -> tuple[str, ...]:
        """Return that the secondary answers, as long as it does."""
        return (self._note(),) if self._failure is not None else ()

    async def check(self) -> tuple[str, ...]:
        """Try Pinecone, or the secondary if that would have to answer."""

        async def instead() -> tuple[str, ...]:
            return (self._note(), *await self.secondary.check())

        return await self._ask(self.primary.check, instead)

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

    async def _ask(
        self, primary: Callable[[], Awaitable[_T]], secondary: Callable[[], Awaitable[_T]]
    ) -> _T:
        if self._failure is not None and time.monotonic() < self._asked_again_at:
            return await secondary()
        try:
            answer = await primary()
        except PineconeUnavailableError as error:
            if not error.passes:
                raise
            self._failure = error
            self._asked_again_at = time.monotonic() + self._pause
            log.warning("the embedded index answers in place of Pinecone: %s", error)
            return await secondary()
        self._failure = None
        return answer

    def _note(self) -> str:
        return f"Answered from the embedded index, because of Pinecone: {self._failure}"
