"""Read a Pinecone index: records by id, code or filter, and the values that its fields have.

The service has no call that lists values, so they come from a sample of the records.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, cast

from typing_extensions import override

from standards_mcp_catalog.base import (
    Catalog,
    Facets,
    FieldValues,
    Filter,
    StandardSets,
    parse_search_filter,
)
from standards_mcp_catalog.records import StandardRecord, chunks, without_surrogates
from standards_mcp_catalog.sets import StandardSet
from standards_mcp_catalog.vocabulary.notation import (
    asn_id_of,
    canonical_key,
    guid_of,
    lookup_keys,
    record_keys,
)
from standards_mcp_catalog.vocabulary.suggestions import meant_by, nearest

from .connection import Connections
from .metadata import KEYS_FIELD, is_id, pinecone_filter, readable

if TYPE_CHECKING:
    from pinecone import AsyncIndex, FetchByMetadataResponse

log = logging.getLogger(__name__)

FETCH_IDS: Final = 100
"""Ids in one fetch: they travel in the URL, whose length is limited."""
MOST_NAMESAKES: Final = 50
"""The most records under one code that are read."""
PAGE: Final = 100
"""The most records of one answer; each has some 10 KB, most of it a vector."""
SAMPLE_PAGES: Final = 5
"""Pages of 100 records in the sample. Their ids are the first in order, which for GUIDs is any
order."""
_EVERYTHING: Final = {"standard_set_id": {"$exists": True}}  # no filter is refused when fetching
_FIRST_NUMBERS: Final = range(1, 10)


class Reader(Catalog):
    """Reads one namespace of an index: records by ids, codes and filters, and values of fields."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self.connections = connections
        self.namespace = namespace
        self._sample: Mapping[str, Mapping[str, Any]] = {}
        self._is_whole = False
        self._sampled_at = -math.inf

    @override
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        async with self.connections.index() as index:
            metadata = await self._fetched(index, dict.fromkeys(ids))
        records = {record.id: record for record in self._records(metadata)}
        return [records[id_] for id_ in ids if id_ in records]

    async def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that an id, a URI or a notation names, best first.

        Records that this program wrote are found by any spelling of their code; others by their
        id, their ASN id, or the very notation that they have.
        """
        return (await self.find_all([identifier]))[0]

    async def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        """Return for each of *identifiers* what `find` returns, in two requests for most texts.

        All are first fetched by their ids, and the rest by their codes.
        """
        wanted = [_Wanted.of(identifier) for identifier in identifiers]
        ids = list(dict.fromkeys(id_ for each in wanted for id_ in each.ids))
        async with self.connections.index() as index:
            found = await self._fetched(index, ids)
            missed = [each for each in wanted if each.keys and not found.keys() & each.ids]
            if missed:
                limit = len(missed) * MOST_NAMESAKES
                found |= await self._matching(index, _naming(missed), limit)
        records = self._records(found)
        return [each.among(records) for each in wanted]

    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records under neighbouring codes of one that `find` did not know."""
        key = canonical_key(without_surrogates(identifier))
        neighbours = neighbouring_keys(key) if guid_of(identifier) is None else []
        if not neighbours:
            return []
        condition = {KEYS_FIELD: {"$in": [f"code:{each}" for each in neighbours]}}
        async with self.connections.index() as index:
            found = await self._matching(index, condition, MOST_NAMESAKES)
        by_key = {_code(record, neighbours): record for record in self._records(found)}
        ordered = nearest(key, by_key, limit)
        return [by_key[each] for each in [*ordered, *(by_key.keys() - set(ordered))]][:limit]

    async def select(self, filter: Filter, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return *limit* records that pass a filter, in the order of their ids.

        A hundred records take one call, and Pinecone allows five calls in a second.
        """
        condition = pinecone_filter(parse_search_filter(filter)) or _EVERYTHING
        async with self.connections.index() as index:
            found = await self._matching(index, condition, limit)
        return sorted(self._records(found), key=lambda record: record.id)

    async def metadata(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Return the metadata of at most `FETCH_IDS` records by their id, in one call."""
        async with self.connections.index() as index:
            return await self._vectors(index, ids)

    async def _fetched(self, index: AsyncIndex, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        some = chunks(ids, FETCH_IDS)
        answers = await asyncio.gather(*(self._vectors(index, each) for each in some))
        return {id_: metadata for answer in answers for id_, metadata in answer.items()}

    async def _vectors(self, index: AsyncIndex, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        possible = list(filter(is_id, ids))
        if not possible:
            return {}
        answer = await index.fetch(ids=possible, namespace=self.namespace)
        return {id_: vector.metadata or {} for id_, vector in answer.vectors.items()}

    async def _matching(
        self, index: AsyncIndex, condition: Mapping[str, Any], limit: int
    ) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        token: str | None = None
        while len(found) < limit:
            size = min(limit - len(found), PAGE)
            page = await self._page(index, condition, size, token)
            found |= {id_: vector.metadata or {} for id_, vector in page.vectors.items()}
            token = page.pagination.next if page.pagination else None
            if not token:
                break
        return found

    async def _page(
        self, index: AsyncIndex, condition: Mapping[str, Any], limit: int, token: str | None
    ) -> FetchByMetadataResponse:
        from pinecone import RateLimitError  # noqa: PLC0415  loaded with the connection

        async def ask() -> FetchByMetadataResponse:
            await self.connections.session.metadata_calls.wait()
            return await index.fetch_by_metadata(
                filter=condition, namespace=self.namespace, limit=limit, pagination_token=token
            )

        try:
            return await ask()
        except RateLimitError:
            await asyncio.sleep(1)  # other programs use the same five in a second
            return await ask()

    async def facets(self) -> Facets:
        """Return the facets, at most as old as the tuning says."""
        sample = (await self._taken()).values()
        return Facets(
            subjects=_counts(sample, "subject"),
            education_levels=_counts(sample, "education_levels"),
            jurisdictions=_counts(sample, "jurisdiction_title"),
            standard_sets=_counts(sample, "standard_set_title"),
        )

    async def values(self, name: str) -> FieldValues:
        """Return the values of a field, at most as old as the tuning says."""
        counts = _counts((await self._taken()).values(), name)
        return FieldValues(counts=counts, complete=self._is_whole, counted=self._is_whole)

    async def sets(self) -> StandardSets:
        """Return the standard sets, at most as old as the tuning says."""
        records, _ = readable((await self._taken()).items())
        counts = Counter(record.standard_set_id for record in records)
        found = {record.standard_set_id: StandardSet.of(record) for record in records}
        sets = [replace(each, records=counts[id_]) for id_, each in found.items()]
        return StandardSets(
            sets=tuple(sorted(sets, key=StandardSet.order)),
            complete=self._is_whole,
            counted=self._is_whole,
        )

    async def _taken(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the metadata of the sample by id, taken anew when it is too old."""
        async with self.connections.session.facets:
            age = time.monotonic() - self._sampled_at
            if age > self.connections.tuning.facets_lifetime:
                started = time.monotonic()
                async with self.connections.index() as index:
                    await self._take(index)
                self._sampled_at = started
            return self._sample

    async def _take(self, index: AsyncIndex) -> None:
        pages: list[list[str]] = []
        token: str | None = None
        for _ in range(SAMPLE_PAGES):
            page = await index.list_paginated(
                limit=FETCH_IDS, pagination_token=token, namespace=self.namespace
            )
            pages.append([item.id for item in page.vectors if item.id])
            token = page.pagination.next if page.pagination else None
            if not token:
                break
        fetches = (index.fetch(ids=ids, namespace=self.namespace) for ids in pages if ids)
        answers = await asyncio.gather(*fetches)
        self._sample = {
            id_: vector.metadata or {} for each in answers for id_, vector in each.vectors.items()
        }
        self._is_whole = not token

    @staticmethod
    def _records(found: Mapping[str, Mapping[str, Any]]) -> list[StandardRecord]:
        records, others = readable(found.items())
        if others:
            log.warning("records of another kind were left out", extra={"count": others})
        return records


def neighbouring_keys(key: str) -> list[str]:
    """Return the canonical keys around *key*, and around what a usual slip makes of it.

    They are its parent, and the parent's first children. So a number that is too great leads to
    existing codes, and so does a misspelt part.
    """
    meant = meant_by(key)
    around = itertools.chain.from_iterable(map(_family, meant))
    return list(dict.fromkeys((*meant[1:], *around)))


def _family(key: str) -> Iterator[str]:
    *leading, last = key.split(".")
    if not leading:
        return
    parent = ".".join(leading)
    yield parent
    numbers = set(_FIRST_NUMBERS)
    if re.fullmatch(r"\d{1,3}", last):
        numbers |= {int(last) - 2, int(last) - 1, int(last) + 1, int(last) + 2}
    yield from (f"{parent}.{number}" for number in sorted(numbers) if number > 0)
    yield from (f"{parent}.{letter}" for letter in "ABCDEF")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One requested text.

    Attributes:
        ids: The ids that the record may have: as typed, or a GUID in any spelling.
        notations: Its code as other writers may have it.
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
        codes = (key.removeprefix("code:") for key in keys if key.startswith("code:"))
        return cls(
            text=text,
            keys=keys,
            ids=frozenset(_possible_ids(text) if keys else ()),
            notations=frozenset((text, text.upper(), *codes)),
            asn_ids=frozenset((text, asn_id_of(text) or text)),
        )

    def among(self, records: Iterable[StandardRecord]) -> list[StandardRecord]:
        """Return the records that the text names, best first; a match by id excludes the others."""
        named = [record for record in records if record.id in self.ids]
        return sorted(named or filter(self._names, records), key=self._rank)

    def _names(self, record: StandardRecord) -> bool:
        codes = (record.statement_notation, *record.alt_statement_notations)
        return bool(self.keys) and (
            not record_keys(record).isdisjoint(self.keys)
            or not self.notations.isdisjoint(codes)
            or record.asn_identifier in self.asn_ids
        )

    def _rank(self, record: StandardRecord) -> tuple[bool, int, str]:
        known = record_keys(record)
        best = next((rank for rank, key in enumerate(self.keys) if key in known), len(self.keys))
        return record.statement_notation != self.text, best, record.id


def _possible_ids(text: str) -> tuple[str, ...]:
    guid = guid_of(text)
    if guid is None:
        return (text,)
    dashed = "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:]))
    return (text, guid, guid.lower(), dashed.lower(), dashed)


def _naming(wanted: Iterable[_Wanted]) -> dict[str, Any]:
    """Return the filter for all requested records, including records of other writers."""
    every = list(wanted)
    notations = sorted({each for one in every for each in one.notations})
    conditions: list[dict[str, Any]] = [
        {KEYS_FIELD: {"$in": sorted({key for one in every for key in one.keys})}},
        {"statement_notation": {"$in": notations}},
        {"alt_statement_notations": {"$in": notations}},
        {"asn_identifier": {"$in": sorted({each for one in every for each in one.asn_ids})}},
    ]
    return {"$or": conditions}


def _code(record: StandardRecord, neighbours: Sequence[str]) -> str:
    known = record_keys(record)
    return next((key for key in neighbours if f"code:{key}" in known), record.id)


def _counts(found: Iterable[Mapping[str, Any]], name: str) -> Counter[str]:
    counts = Counter[str]()
    for fields in found:
        value = fields.get(name)
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        counts.update(each for each in values if isinstance(each, str))
    return counts
