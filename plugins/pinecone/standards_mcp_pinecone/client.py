"""The catalog in a Pinecone index: texts are embedded and results reranked by the service.

The index is made for the model ``llama-text-embed-v2`` with ``content`` as its text field, see
https://docs.pinecone.io/guides/index-data/create-an-index#integrated-embedding. Importing this
module is cheap; the SDK is imported by the first call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from standards_mcp_catalog.base import (
    Catalog,
    CatalogStats,
    Filter,
    ForwardingCatalog,
    SearchHit,
    SearchResult,
    check_query,
    parse_search_filter,
)
from standards_mcp_catalog.records import without_surrogates
from standards_mcp_catalog.settings import PineconeCatalogSettings

from .connections import Connections
from .failures import PineconeUnavailableError
from .metadata import MODEL, TEXT_FIELD, pinecone_filter, readable
from .writing import Writer

if TYPE_CHECKING:
    from pinecone import Hit

log = logging.getLogger(__name__)

RERANK_MODEL: Final = "bge-reranker-v2-m3"
# Equal texts stay apart: the reranker returns as many records as requested, so that joining them
# would leave too few.
MAX_RESULTS: Final = 100
"""The most hits of one search: the limit of documents for the reranker."""

_NOT_RERANKED: Final = "The results are not reranked, because {}; their order is less exact."


class PineconeClient(Writer):
    """A `Catalog` in one namespace of a Pinecone index.

    It may be used from several event loops. Every method raises `PineconeUnavailableError`, a
    `CatalogUnavailableError`, with a remedy, when Pinecone does not answer. The deadline counts for
    one call; for one request, where a write takes several.

    Raises:
        ConfigError: There is no key.
    """

    def __init__(self, settings: PineconeCatalogSettings) -> None:
        super().__init__(Connections(settings), settings.namespace)

    @override
    async def search(
        self, query_text: str, top_k: int = 5, filter: Filter | None = None
    ) -> SearchResult:
        check_query(query_text, top_k)
        expression = pinecone_filter(parse_search_filter(filter))
        if not query_text.strip():
            return SearchResult(hits=())
        hits, notes = await self._ranked(query_text, min(top_k, MAX_RESULTS), expression)
        records, unreadable = readable((hit.id, hit.fields) for hit in hits)
        if unreadable:
            skipped = (
                f"{unreadable} results were left out, because they are not records of standards; "
                "check PINECONE_INDEX_NAME and PINECONE_NAMESPACE."
            )
            notes = (*notes, skipped)
        scores = {hit.id: hit.score for hit in hits}
        # Scores fall from at most 1, also where the reranker's do not.
        falling = accumulate((max(0.0, scores[record.id]) for record in records), min, initial=1.0)
        pairs = zip(records, islice(falling, 1, None), strict=True)
        found = (SearchHit(record=record, score=round(score, 4)) for record, score in pairs)
        return SearchResult(hits=tuple(found), notes=notes)

    @override
    async def stats(self) -> CatalogStats:
        async with self.connections.index() as index:
            described = await index.describe_index_stats()
            summary = described.namespaces.get(self.namespace)
            details = {
                "namespace": self.namespace,
                "host": index.host,
                "dimension": described.dimension,
                "reranker": RERANK_MODEL,
            }
        return CatalogStats(
            backend="pinecone",
            location=self.connections.index_name,
            records=summary.vector_count if summary is not None else 0,
            model=MODEL,
            details={name: value for name, value in details.items() if value is not None},
        )

    @override
    async def aclose(self) -> None:
        await self.connections.aclose()

    async def _ranked(
        self, text: str, count: int, expression: Mapping[str, Any] | None
    ) -> tuple[list[Hit], tuple[str, ...]]:
        """Return the hits and notes; search without the reranker if it fails."""
        request: dict[str, Any] = {
            "namespace": self.namespace,
            "inputs": {"text": without_surrogates(text)},
            "top_k": min(2 * count, MAX_RESULTS),
        }
        if expression is not None:
            request["filter"] = dict(expression)
        rerank: dict[str, Any] = {
            "model": RERANK_MODEL,
            "top_n": count,
            "rank_fields": [TEXT_FIELD],
            "parameters": {"truncate": "END"},
        }
        async with self.connections.index() as index:
            from pinecone import RateLimitError  # noqa: PLC0415  loaded with the connection

            # The reranker gets a share of the deadline, so that time is left to search without it.
            share = asyncio.timeout(0.6 * self.connections.deadline)
            try:
                async with share:
                    answer = await index.search(**request, rerank=rerank)
            except RateLimitError:
                reason = "the quota of Pinecone's reranker is used up"
            except TimeoutError:
                if not share.expired():
                    raise
                reason = "Pinecone's reranker did not answer in time"
            else:
                return answer.result.hits, ()
            request["top_k"] = count
            answer = await index.search(**request)
        return answer.result.hits, (_NOT_RERANKED.format(reason),)


class FallbackCatalog(ForwardingCatalog):
    """Reads from Pinecone, and from *secondary* while Pinecone does not answer.

    Only temporary failures are bridged: a wrong key or a missing index is an error, since it would
    otherwise stay unnoticed. Writes always go to Pinecone.

    Args:
        pause: Pause in seconds after a failure of Pinecone, so that not every search waits for its
            deadline.
    """

    def __init__(self, primary: PineconeClient, secondary: Catalog, *, pause: float = 30.0) -> None:
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
    async def aclose(self) -> None:
        try:
            await self.primary.aclose()
        finally:
            await self.secondary.aclose()

    @override
    async def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if method in ("upsert", "delete"):
            return await getattr(self.primary, method)(*args, **kwargs)
        answer, _ = await self._ask_with_notes(method, *args, **kwargs)
        return answer

    async def _ask_with_notes(
        self, method: str, *args: Any, **kwargs: Any
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the answer of one of the catalogs, and a note if the second gave it."""
        if self._failure is None or time.monotonic() >= self._asked_again_at:
            try:
                answer = await getattr(self.primary, method)(*args, **kwargs)
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
        return await getattr(self.secondary, method)(*args, **kwargs), notes
