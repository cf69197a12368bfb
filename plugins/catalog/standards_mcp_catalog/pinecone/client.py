"""The catalog in a Pinecone index: texts are embedded and results reranked by the service.

The index is made for the model ``llama-text-embed-v2`` with ``content`` as its text field, see
https://docs.pinecone.io/guides/index-data/create-an-index#integrated-embedding. Importing this
module is cheap; the SDK is imported by the first call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr
from typing_extensions import override

from standards_mcp.filters import FilterExpression, combine
from standards_mcp_catalog.base import (
    Catalog,
    CatalogStats,
    Facets,
    FieldValues,
    Filter,
    SearchHit,
    SearchResult,
    StandardSets,
    check_query,
    parse_search_filter,
)
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.texts import without_surrogates
from standards_mcp_catalog.vocabulary.grades import parse_grades

from .connection import Connections, Tuning, checked_host
from .failures import PineconeUnavailableError
from .lookup import FacetReader, Finder
from .metadata import MODEL, TEXT_FIELD, pinecone_filter, readable
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
_EVERYTHING: Final = {"standard_set_id": {"$exists": True}}  # no filter is refused when fetching

QUOTA_NOTE: Final = (
    "The results are not reranked, because the quota of Pinecone's reranker is used up; their "
    "order is less exact."
)
SLOW_NOTE: Final = (
    "The results are not reranked, because Pinecone's reranker did not answer in time; their "
    "order is less exact."
)


class PineconeClient(Catalog):
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
        self.namespace = namespace
        self.connections = Connections(
            api_key, index_name=index_name, host=host, deadline=deadline, tuning=tuning
        )
        self.writer = Writer(self.connections, namespace)
        self._finder = Finder(self.connections, namespace)
        self._facets = FacetReader(self.connections, namespace)

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

    async def search_standards(
        self,
        query_text: str,
        top_k: int = 5,
        grade: str | None = None,
        subject: str | None = None,
        filter: FilterExpression | None = None,  # noqa: A002
    ) -> list[dict[str, Any]]:
        """Return the fields of the *top_k* best records, each with ``_id`` and ``score``.

        Args:
            grade: One or more, in any form that `grades.parse_grades` understands.
            subject: Exactly as the index writes it.
            filter: A further filter.

        Raises:
            UnknownGradeError: The grade is unknown.
            FilterError: The filter is wrong.
        """
        levels = {"education_levels": {"$in": list(parse_grades(grade))}} if grade else None
        named = {"subject": {"$eq": subject}} if subject else None
        result = await self.search(query_text, top_k, combine(levels, named, filter))
        for note in result.notes:
            log.warning(note)
        return [hit.record.to_dict() | {"score": hit.score} for hit in result.hits]

    async def fetch_standard(self, standard_id: str) -> dict[str, Any] | None:
        """Return the fields of the record that a GUID or a notation names, or None."""
        found = await self.find(standard_id)
        return found[0].to_dict() if found else None

    @override
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        return await self._finder.fetch(ids)

    async def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that an id, a URI or a notation names, best first.

        Records that this program wrote are found by any spelling of their code; others by their
        id, their ASN id, or the very notation that they have.
        """
        return (await self._finder.find_all([identifier]))[0]

    async def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        """Return for each of *identifiers* what `find` returns, in two requests for most texts."""
        return await self._finder.find_all(identifiers)

    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records under neighbouring codes of one that `find` did not know."""
        return await self._finder.suggest(identifier, limit)

    async def select(self, filter: Filter, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return *limit* records that pass a filter, in the order of their ids.

        A hundred records take one call, and Pinecone allows five calls in a second.
        """
        expression = pinecone_filter(parse_search_filter(filter))
        return await self._finder.select(expression or _EVERYTHING, limit)

    async def sets(self) -> StandardSets:
        """Return the standard sets; not all of them if they are very many."""
        return await self._facets.sets()

    async def facets(self) -> Facets:
        """Return every subject, the other values of a sample, and the counts of the sample."""
        return await self._facets.facets()

    async def values(self, name: str) -> FieldValues:
        """Return the texts of a field; not all of them if they are very many."""
        return await self._facets.values(name)

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


__all__ = [
    "INDEX_NAME",
    "MODEL",
    "NAMESPACE",
    "RERANK_MODEL",
    "PineconeClient",
    "PineconeUnavailableError",
    "Tuning",
    "checked_host",
]
