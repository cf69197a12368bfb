"""Read a Pinecone index: records by id, code or filter, and the values that its fields have.

The service has no call that lists values, so they come from a sample of the records.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from typing_extensions import override

from standards_mcp_catalog.base import Catalog, Filter, parse_search_filter
from standards_mcp_catalog.records import StandardRecord, chunks, without_surrogates
from standards_mcp_catalog.results import Facets, FieldValues, StandardSets
from standards_mcp_catalog.sets import StandardSet
from standards_mcp_catalog.vocabulary.notation import (
    PREFIXES_FIELD,
    asn_id_of,
    canonical_key,
    guid_of,
    lookup_keys,
    record_keys,
)
from standards_mcp_catalog.vocabulary.suggestions import likely_keys, nearest

from .connections import Connections
from .metadata import KEYS_FIELD, is_id, parse_records, pinecone_filter

if TYPE_CHECKING:
    from pinecone import AsyncIndex, FetchByMetadataResponse

log = logging.getLogger(__name__)

PAGE: Final = 100
"""Most records of a request: ids are in its URL, and the answer has 10 KB for each record."""
MOST_NAMESAKES: Final = 50
"""Most records under one code that are read."""
SAMPLE_PAGES: Final = 5
"""Pages in the sample: the first ids in order, which are random records if ids are GUIDs."""
SAMPLE_LIFETIME: Final = 3600.0
_RATE_WINDOW: Final = 1.1  # seconds; longer than one, since calls are not equally fast
# Pinecone refuses to fetch without a filter.
_EVERYTHING: Final = {"standard_set_id": {"$exists": True}}

Metadata: TypeAlias = dict[str, Mapping[str, Any]]
"""The metadata of records by their id."""


class Reader(Catalog):
    """Reads one namespace of an index."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self.connections = connections
        self.namespace = namespace
        self._sample: Metadata = {}
        self._is_complete = False
        self._sampled_at = -math.inf

    @override
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        async with self.connections.index() as index:
            metadata = await self._fetch_metadata(index, dict.fromkeys(ids))
        records = {record.id: record for record in _records(metadata)}
        return [records[id_] for id_ in ids if id_ in records]

    @override
    async def find(self, identifier: str) -> list[StandardRecord]:
        return (await self.find_all([identifier]))[0]

    @override
    async def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        # Two requests in most cases: one for ids, one for the remaining codes. Records that
        # other programs wrote have no `KEYS_FIELD`; they are found by their exact notations.
        wanted = [_Lookup.of(identifier) for identifier in identifiers]
        ids = dict.fromkeys(id_ for each in wanted for id_ in each.ids)
        async with self.connections.index() as index:
            metadata = await self._fetch_metadata(index, ids)
            missed = [each for each in wanted if each.keys and not metadata.keys() & each.ids]
            if missed:
                limit = len(missed) * MOST_NAMESAKES
                metadata |= await self._matching(index, _lookup_filter(missed), limit)
        records = _records(metadata)
        return [each.matches_in(records) for each in wanted]

    @override
    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        key = canonical_key(without_surrogates(identifier))
        headings = [heading for each in likely_keys(key) if (heading := each.rpartition(".")[0])]
        if not headings or guid_of(identifier):
            return []
        condition = {PREFIXES_FIELD: {"$in": headings}}
        async with self.connections.index() as index:
            metadata = await self._matching(index, condition, PAGE)
        by_key = {
            key: record for record in _records(metadata) for key in _codes(record_keys(record))
        }
        return [by_key[each] for each in nearest(key, by_key, limit)]

    @override
    async def select(self, filter: Filter, limit: int) -> list[StandardRecord]:
        condition = pinecone_filter(parse_search_filter(filter)) or _EVERYTHING
        async with self.connections.index() as index:
            metadata = await self._matching(index, condition, limit)
        return sorted(_records(metadata), key=lambda record: record.id)

    @override
    async def facets(self) -> Facets:
        sample = await self._current_sample()
        return Facets(
            subjects=_counts(sample, "subject"),
            education_levels=_counts(sample, "education_levels"),
            jurisdictions=_counts(sample, "jurisdiction_title"),
            standard_sets=_counts(sample, "standard_set_title"),
        )

    @override
    async def values(self, name: str) -> FieldValues:
        counts = _counts(await self._current_sample(), name)
        return FieldValues(counts=counts, complete=self._is_complete, counted=self._is_complete)

    @override
    async def sets(self) -> StandardSets:
        records, _ = parse_records((await self._current_sample()).items())
        counts = Counter(record.standard_set_id for record in records)
        by_id = {record.standard_set_id: StandardSet.of(record) for record in records}
        sets = [replace(each, records=counts[id_]) for id_, each in by_id.items()]
        return StandardSets(
            sets=tuple(sorted(sets, key=StandardSet.order)),
            complete=self._is_complete,
            counted=self._is_complete,
        )

    async def _fetch_metadata(self, index: AsyncIndex, ids: Iterable[str]) -> Metadata:
        pages = chunks(filter(is_id, ids), PAGE)
        fetches = (index.fetch(ids=page, namespace=self.namespace) for page in pages)
        return _metadata(*(answer.vectors for answer in await asyncio.gather(*fetches)))

    async def _matching(
        self, index: AsyncIndex, condition: Mapping[str, Any], limit: int
    ) -> Metadata:
        matching: Metadata = {}
        token: str | None = None
        while len(matching) < limit:
            size = min(limit - len(matching), PAGE)
            page = await self._page(index, condition, size, token)
            matching |= _metadata(page.vectors)
            token = page.pagination.next if page.pagination else None
            if not token:
                break
        return matching

    async def _page(
        self, index: AsyncIndex, condition: Mapping[str, Any], limit: int, token: str | None
    ) -> FetchByMetadataResponse:
        from pinecone import RateLimitError  # noqa: PLC0415  loaded with the connection

        async def fetch() -> FetchByMetadataResponse:
            rate_limit = self.connections.session.metadata_calls
            await rate_limit.acquire()
            asyncio.get_running_loop().call_later(_RATE_WINDOW, rate_limit.release)
            return await index.fetch_by_metadata(
                filter=condition, namespace=self.namespace, limit=limit, pagination_token=token
            )

        try:
            return await fetch()
        except RateLimitError:
            await asyncio.sleep(1)  # other programs share the limit of five calls a second
            return await fetch()

    async def page_of_ids(self, index: AsyncIndex, token: str | None) -> tuple[list[str], str]:
        """Return at most 100 ids, and the token of the next page, "" after the last one."""
        page = await index.list_paginated(
            limit=PAGE, pagination_token=token, namespace=self.namespace
        )
        following = page.pagination.next if page.pagination else None
        return [item.id for item in page.vectors if item.id], following or ""

    async def _current_sample(self) -> Metadata:
        """Return the metadata of the sample; take a new sample if the last one is too old."""
        async with self.connections.session.sampling:
            started = time.monotonic()
            if started - self._sampled_at > SAMPLE_LIFETIME:
                ids, token = list[str](), None
                async with self.connections.index() as index:
                    for _ in range(SAMPLE_PAGES):
                        page, token = await self.page_of_ids(index, token)
                        ids += page
                        if not token:
                            break
                    self._sample = await self._fetch_metadata(index, ids)
                self._is_complete = not token
                self._sampled_at = started
            return self._sample


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The keys and values to find for one requested text.

    Attributes:
        ids: The ids that the record may have: as typed, or a GUID in any spelling.
        notations: The spellings of a code that other programs may have written.
    """

    text: str
    keys: tuple[str, ...]
    ids: frozenset[str]
    notations: frozenset[str]
    asn_ids: frozenset[str]

    @classmethod
    def of(cls, identifier: str) -> Self:
        text = without_surrogates(identifier).strip()
        keys = lookup_keys(text)
        return cls(
            text=text,
            keys=keys,
            ids=frozenset(_possible_ids(text) if keys else ()),
            notations=frozenset((text, text.upper(), *_codes(keys))),
            asn_ids=frozenset((text, asn_id_of(text) or text)),
        )

    def matches_in(self, records: Iterable[StandardRecord]) -> list[StandardRecord]:
        """Return the records that the text names, best first; a match by id excludes the others."""
        named = [record for record in records if record.id in self.ids]
        return sorted(named or filter(self._matches, records), key=self._rank)

    def _matches(self, record: StandardRecord) -> bool:
        codes = (record.statement_notation, *record.alt_statement_notations)
        return bool(self.keys) and (
            not record_keys(record).isdisjoint(self.keys)
            or not self.notations.isdisjoint(codes)
            or record.asn_identifier in self.asn_ids
        )

    def _rank(self, record: StandardRecord) -> tuple[bool, int, str]:
        keys = record_keys(record)
        best = next((rank for rank, key in enumerate(self.keys) if key in keys), len(self.keys))
        return record.statement_notation != self.text, best, record.id


def _codes(keys: Iterable[str]) -> Iterator[str]:
    return (key.removeprefix("code:") for key in keys if key.startswith("code:"))


def _possible_ids(text: str) -> tuple[str, ...]:
    guid = guid_of(text)
    if guid is None:
        return (text,)
    dashed = "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:]))
    return (text, guid, guid.lower(), dashed.lower(), dashed)


def _lookup_filter(wanted: Sequence[_Lookup]) -> dict[str, Any]:
    """Return a filter for all *wanted* records, including records that other programs wrote."""
    notations = sorted({notation for each in wanted for notation in each.notations})
    conditions: list[dict[str, Any]] = [
        {KEYS_FIELD: {"$in": sorted({key for each in wanted for key in each.keys})}},
        {"statement_notation": {"$in": notations}},
        {"alt_statement_notations": {"$in": notations}},
        {"asn_identifier": {"$in": sorted({id_ for each in wanted for id_ in each.asn_ids})}},
    ]
    return {"$or": conditions}


def _metadata(*answers: Mapping[str, Any]) -> Metadata:
    return {id_: vector.metadata or {} for each in answers for id_, vector in each.items()}


def _records(metadata: Metadata) -> list[StandardRecord]:
    records, others = parse_records(metadata.items())
    if others:
        log.warning("records of another kind were left out", extra={"count": others})
    return records


def _counts(sample: Metadata, name: str) -> Counter[str]:
    counts = Counter[str]()
    for fields in sample.values():
        value = fields.get(name)
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        counts.update(each for each in values if isinstance(each, str))
    return counts
