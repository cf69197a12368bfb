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
    Filter,
    ForwardingCatalog,
    check_query,
    parse_search_filter,
)
from standards_mcp_catalog.records import without_surrogates
from standards_mcp_catalog.results import CatalogStats, SearchHit, SearchResult
from standards_mcp_catalog.settings import PineconeCatalogSettings

from .connections import Connections
from .failures import PineconeUnavailableError
from .metadata import MODEL, TEXT_FIELD, parse_records, pinecone_filter
from .writing import Writer

if TYPE_CHECKING:
    from pinecone import Hit

log = logging.getLogger(__name__)

RERANK_MODEL: Final = "bge-reranker-v2-m3"
# Unlike the embedded store, this one does not join hits with equal texts: the reranker returns no
# more records than requested, so too few would be left.
MAX_RESULTS: Final = 100
"""Most hits of one search, because the reranker takes no more documents."""

_NOT_RERANKED: Final = "The results are not reranked, because {}; their order is less exact."


class PineconeClient(Writer):
    """A `Catalog` in one namespace of a Pinecone index.

    Several event loops may use it. If Pinecone does not answer, every method raises
    `PineconeUnavailableError`, whose message has a remedy. The deadline applies to a call, but in
    writes to each request.

    Raises:
        ConfigError: The settings have no API key.
    """

    def __init__(self, settings: PineconeCatalogSettings) -> None:
        super().__init__(Connections(settings), settings.namespace)

    @override
    async def search(
        self, query_text: str, top_k: int = 5, filter: Filter | None = None
    ) -> SearchResult:
        from standards_mcp_catalog.local.index.lexical import (  # noqa: PLC0415  imports NumPy
            common_words,
        )

        check_query(query_text, top_k)
        expression = pinecone_filter(parse_search_filter(filter))
        if not query_text.strip():
            return SearchResult(hits=())
        hits, notes = await self._ranked(query_text, min(top_k, MAX_RESULTS), expression)
        records, foreign = parse_records((hit.id, hit.fields) for hit in hits)
        if foreign:
            note = (
                f"{foreign} results were left out, because they are not records of standards; "
                "check PINECONE_INDEX_NAME and PINECONE_NAMESPACE."
            )
            notes = (*notes, note)
        scores = {hit.id: hit.score for hit in hits}
        # Scores must fall from at most 1; those of the reranker may not.
        falling = accumulate((max(0.0, scores[record.id]) for record in records), min, initial=1.0)
        words = common_words(query_text, records)
        rows = zip(records, islice(falling, 1, None), words, strict=True)
        found = (
            SearchHit(record=record, score=round(score, 4), why=", ".join(common))
            for record, score, common in rows
        )
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

            # The reranker gets a part of the deadline, so that time is left to search without it.
            rerank_timeout = asyncio.timeout(0.6 * self.connections.deadline)
            try:
                async with rerank_timeout:
                    answer = await index.search(**request, rerank=rerank)
            except RateLimitError:
                reason = "the quota of Pinecone's reranker is used up"
            except TimeoutError:
                if not rerank_timeout.expired():
                    raise
                reason = "Pinecone's reranker did not answer in time"
            else:
                return answer.result.hits, ()
            request["top_k"] = count
            answer = await index.search(**request)
        return answer.result.hits, (_NOT_RERANKED.format(reason),)


class FallbackCatalog(ForwardingCatalog):
    """Reads from Pinecone, and from *secondary* while Pinecone does not answer.

    Only temporary failures lead to *secondary*. A wrong key or a missing index is an error, which
    would otherwise stay unnoticed. Writes always go to Pinecone.

    Args:
        pause: Seconds after a failure in which Pinecone is not tried again, so that not every
            search waits for its deadline.
    """

    def __init__(self, primary: PineconeClient, secondary: Catalog, *, pause: float = 30.0) -> None:
        self.primary = primary
        self.secondary = secondary
        self._pause = pause
        self._failure: PineconeUnavailableError | None = None
        self._next_attempt_at = 0.0

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

    # For answers such as lists of records, which cannot contain a note themselves.
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
        """Return the answer of a catalog, and a note if it is from the secondary one."""
        if self._failure is None or time.monotonic() >= self._next_attempt_at:
            try:
                answer = await getattr(self.primary, method)(*args, **kwargs)
            except PineconeUnavailableError as error:
                if not error.is_temporary:
                    raise
                self._failure = error
                self._next_attempt_at = time.monotonic() + self._pause
                log.warning("the embedded index answers in place of Pinecone: %s", error)
            else:
                self._failure = None
                return answer, ()
        notes = self.notes()  # taken now, since another call may clear the failure meanwhile
        return await getattr(self.secondary, method)(*args, **kwargs), notes
