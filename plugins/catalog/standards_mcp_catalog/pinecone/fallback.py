"""Two catalogs as one: the second answers while the first is out of reach, and a note says so."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from typing_extensions import override

from standards_mcp_catalog.base import (
    Catalog,
    CatalogStats,
    Filter,
    ForwardingCatalog,
    SearchResult,
)
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import KINDS, StatedRelation

from .client import PineconeClient
from .failures import PineconeUnavailableError

log = logging.getLogger(__name__)

PAUSE: Final = 30.0
"""Seconds after a failure before Pinecone is tried again."""


class FallbackCatalog(ForwardingCatalog):
    """Reads from Pinecone, and from *secondary* while Pinecone does not answer.

    Only temporary failures are bridged: a wrong key or a missing index is an error, since it would
    otherwise stay unnoticed. Writes always go to Pinecone.

    Args:
        pause: Pause in seconds after a failure of Pinecone, so that not every search waits for its
            deadline.
    """

    def __init__(
        self, primary: PineconeClient, secondary: Catalog, *, pause: float = PAUSE
    ) -> None:
        self.primary = primary
        self.secondary = secondary
        self._pause = pause
        self._failure: PineconeUnavailableError | None = None
        self._asked_again_at = 0.0

    @override
    async def search(
        self, query_text: str, top_k: int = 5, filter: Filter | None = None
    ) -> SearchResult:
        result: SearchResult
        result, notes = await self._ask_with_notes("search", query_text, top_k, filter)
        return replace(result, notes=(*notes, *result.notes))

    @override
    async def relations(
        self, records: Sequence[StandardRecord], kinds: Collection[str] = KINDS, limit: int = 50
    ) -> list[tuple[StatedRelation, ...]]:
        # Records without relations need no request to Pinecone, and an answer without a request
        # would look as if Pinecone could be reached again.
        if self._failure is not None:
            return await self.secondary.relations(records, kinds, limit)
        return await super().relations(records, kinds, limit)

    @override
    async def stats(self) -> CatalogStats:
        stats: CatalogStats
        stats, notes = await self._ask_with_notes("stats")
        reason = {"fallback": notes[0]} if notes else {}
        return replace(stats, details={**reason, **stats.details})

    # Other answers than searches are plain records, which cannot carry a note.
    @override
    def notes(self) -> tuple[str, ...]:
        if self._failure is None:
            return ()
        return (f"Answered from the embedded index, because of Pinecone: {self._failure}",)

    @override
    async def check(self) -> tuple[str, ...]:
        found, notes = await self._ask_with_notes("check")
        return (*notes, *found)

    @override
    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        return await self.primary.upsert(records)

    @override
    async def delete(self, ids: Iterable[str]) -> int:
        return await self.primary.delete(ids)

    @override
    async def aclose(self) -> None:
        try:
            await self.primary.aclose()
        finally:
            await self.secondary.aclose()

    @override
    async def _ask(self, method: str, *arguments: Any) -> Any:
        answer, _ = await self._ask_with_notes(method, *arguments)
        return answer

    async def _ask_with_notes(self, method: str, *arguments: Any) -> tuple[Any, tuple[str, ...]]:
        """Return the answer of one of the catalogs, and a note if the second gave it."""
        if self._failure is None or time.monotonic() >= self._asked_again_at:
            try:
                answer = await getattr(self.primary, method)(*arguments)
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
        return await getattr(self.secondary, method)(*arguments), notes
