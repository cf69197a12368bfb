"""The catalog in a Pinecone index: texts are embedded and results reranked by the service.

`FallbackCatalog` lets a second catalog answer while Pinecone is out of reach.

The index is made for the model ``llama-text-embed-v2`` with ``content`` as its text field, see
https://docs.pinecone.io/guides/index-data/create-an-index#integrated-embedding. Importing this
module is cheap; the SDK is imported by the first call.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr
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
from standards_mcp_catalog.records import StandardRecord, without_surrogates
from standards_mcp_catalog.relations import KINDS, StatedRelation

from .connection import Connections, Tuning
from .failures import PineconeUnavailableError
from .lookup import Reader
from .metadata import TEXT_FIELD, pinecone_filter, readable
from .upload import Writer

if TYPE_CHECKING:
    from pinecone import AsyncIndex, Hit

log = logging.getLogger(__name__)

INDEX_NAME: Final = "common-core-standards"
NAMESPACE: Final = "standards"
RERANK_MODEL: Final = "bge-reranker-v2-m3"
# Equal texts stay apart: the reranker returns as many records as requested, so that joining them
# would leave too few.
MAX_RESULTS: Final = 100
"""The most hits of one search: the limit of documents for the reranker."""
_RERANK_SHARE: Final = 0.6

QUOTA_NOTE: Final = (
    "The results are not reranked, because the quota of Pinecone's reranker is used up; their "
    "order is less exact."
)
SLOW_NOTE: Final = (
    "The results are not reranked, because Pinecone's reranker did not answer in time; their "
    "order is less exact."
)


class PineconeClient(Reader):
    """A `Catalog` in one namespace of a Pinecone index.

    It may be used from several event loops. Every method raises `PineconeUnavailableError`, a
    `CatalogUnavailableError`, with a remedy, when Pinecone does not answer.

    Args:
        api_key: Kept secret: it is in no message, log or repr.
        host: The host of the index, which saves asking for it; http only on loopback.
        deadline: Seconds for one call; for one request, where a write takes several.

    Raises:
        ValueError: The host is wrong.
    """

    def __init__(
        self,
        api_key: SecretStr | str,
        *,
        index_name: str = INDEX_NAME,
        namespace: str = NAMESPACE,
        host: str | None = None,
        deadline: float = 20.0,
        tuning: Tuning | None = None,
    ) -> None:
        tuning = tuning or Tuning()
        connections = Connections(
            api_key, index_name=index_name, host=host, deadline=deadline, tuning=tuning
        )
        super().__init__(connections, namespace)
        self.writer = Writer(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.connections.index_name!r}, {self.namespace!r})"

    async def search(
        self,
        query_text: str,
        top_k: int = 5,
        filter: Filter | None = None,  # noqa: A002
    ) -> SearchResult:
        """Return the *top_k* best records for a text, see `Catalog.search`; at most 100."""
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

    async def stats(self) -> CatalogStats:
        """Return how many records the namespace holds; this needs the key, but no quota."""
        async with self.connections.index() as index:
            described = await index.describe_index_stats()
            summary = described.namespaces.get(self.namespace)
            model = self.connections.session.model
            details = {
                "namespace": self.namespace,
                "host": index.host,
                "dimension": described.dimension,
                "reranker": RERANK_MODEL,
            }
        fields = model.schema.fields if model is not None else {}
        return CatalogStats(
            backend="pinecone",
            location=self.connections.index_name,
            records=summary.vector_count if summary is not None else 0,
            model=getattr(fields.get(TEXT_FIELD), "model", None),
            details={name: value for name, value in details.items() if value is not None},
        )

    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        """Add or replace records and return how many changed.

        They are found by a search some seconds later: the index is eventually consistent.

        Raises:
            CatalogError: Pinecone cannot hold a record; none of its batch is written.
        """
        return await self.writer.upsert(records)

    @override
    async def delete(self, ids: Iterable[str]) -> int:
        return await self.writer.delete(ids)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; a later call opens new ones."""
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
        async with self.connections.index() as index:
            hits, note = await self._reranked(index, request, count)
            if note:
                request["top_k"] = count
                hits = (await index.search(**request)).result.hits
        return hits[:count], (note,) if note else ()

    async def _reranked(
        self, index: AsyncIndex, request: Mapping[str, Any], count: int
    ) -> tuple[list[Hit], str]:
        """Return the reranked hits and "", or an empty list and a note that says why."""
        from pinecone import RateLimitError  # noqa: PLC0415  loaded with the connection

        rerank: dict[str, Any] = {
            "model": RERANK_MODEL,
            "top_n": count,
            "rank_fields": [TEXT_FIELD],
            "parameters": {"truncate": "END"},
        }
        # The reranker gets a share of the deadline, so that time is left to search without it.
        share = asyncio.timeout(_RERANK_SHARE * self.connections.deadline)
        try:
            async with share:
                answer = await index.search(**request, rerank=rerank)
        except RateLimitError:
            return [], QUOTA_NOTE
        except TimeoutError:
            if not share.expired():
                raise
            return [], SLOW_NOTE
        return answer.result.hits, ""


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
    async def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
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


__all__ = ["FallbackCatalog", "PineconeClient", "PineconeUnavailableError", "Tuning"]
