"""Which subjects, levels and places a Pinecone index holds; the service has no call for that.

A sample of the records shows what is common. The subjects, which decide what a search is
restricted to, and the values of any field that is asked for are then completed: a fetch of records
whose value is none of those known brings a new one, until there is none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from . import Facets, FieldValues, StandardSets
from ._pinecone_connection import Connections
from ._pinecone_records import readable
from .merging import own_set_title
from .record_store import StandardSet
from .records import StandardRecord

if TYPE_CHECKING:
    from pinecone import AsyncIndex

log = logging.getLogger(__name__)

SAMPLE: Final = 100
"""Records of the sample. Their ids are the first in order, which for GUIDs is any order."""
MOST_ROUNDS: Final = 20
_MOST_DISTINCT: Final = 2 / 3  # of the sample: beyond it nearly every record has its own value
_PER_ROUND: Final = 20


class Surveyor:
    """Takes the sample once in a while, and remembers what it and the search for more showed."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self._connections = connections
        self._namespace = namespace
        self._sampled: tuple[float, Sequence[Mapping[str, Any]]] | None = None
        self._known: dict[str, FieldValues] = {}
        self._sets: dict[str, StandardSet] = {}

    async def facets(self) -> Facets:
        """Return the facets, at most as old as the tuning says."""
        async with self._connections.session.facets:
            found = await self._sample()
            subjects = await self._values("subject")
        return Facets(
            subjects=subjects.counts,
            education_levels=_counts(found, "education_levels"),
            jurisdictions=_counts(found, "jurisdiction_title"),
            standard_sets=_counts(found, "standard_set_title"),
        )

    async def values(self, name: str) -> FieldValues:
        """Return the values of a field, at most as old as the tuning says."""
        async with self._connections.session.facets:
            return await self._values(name)

    async def sets(self) -> StandardSets:
        """Return the standard sets, at most as old as the tuning says."""
        async with self._connections.session.facets:
            ids = await self._values("standard_set_id")
            found = [
                replace(self._sets[id_], records=count)
                for id_, count in ids.counts.items()
                if id_ in self._sets
            ]
        return StandardSets(
            sets=tuple(sorted(found, key=_set_order)), complete=ids.complete, counted=False
        )

    async def _values(self, name: str) -> FieldValues:
        found = await self._sample()
        if name not in self._known:
            counts = _counts(found, name)
            hopeless = len(counts) > _MOST_DISTINCT * SAMPLE
            complete = not found or (not hopeless and await self._completed(name, counts))
            self._known[name] = FieldValues(counts=counts, complete=complete, counted=False)
        return self._known[name]

    async def _sample(self) -> Sequence[Mapping[str, Any]]:
        now, lifetime = time.monotonic(), self._connections.tuning.facets_lifetime
        if self._sampled is None or now - self._sampled[0] > lifetime:
            self._known.clear()
            self._sets.clear()
            self._sampled = now, await self._first_records()
        return self._sampled[1]

    async def _first_records(self) -> list[Mapping[str, Any]]:
        async with self._connections.index() as index:
            page = await index.list_paginated(limit=SAMPLE, namespace=self._namespace)
            ids = [item.id for item in page.vectors if item.id]
            if not ids:
                return []
            answer = await index.fetch(ids=ids, namespace=self._namespace)
        return self._seen({id_: vector.metadata or {} for id_, vector in answer.vectors.items()})

    async def _completed(self, name: str, counts: Counter[str]) -> bool:
        """Add the values that the sample did not show; tell whether time allowed for all."""
        async with self._connections.index() as index:
            from pinecone import PineconeError  # noqa: PLC0415  loaded with the connection

            try:
                async with asyncio.timeout(self._connections.deadline / 2):
                    return await self._complete(index, name, counts)
            except (PineconeError, TimeoutError) as error:
                log.warning("the values of %s are incomplete: %s", name, type(error).__name__)
                return False

    async def _complete(self, index: AsyncIndex, name: str, counts: Counter[str]) -> bool:
        for _ in range(MOST_ROUNDS):
            found = await self._others(index, name, counts)
            if not found.keys() - counts.keys():
                return True
            counts.update(found)
        return False

    async def _others(self, index: AsyncIndex, name: str, known: Iterable[str]) -> Counter[str]:
        await self._connections.session.metadata_calls.wait()
        listed = sorted(known)
        answer = await index.fetch_by_metadata(
            filter={name: {"$nin": listed} if listed else {"$exists": True}},
            namespace=self._namespace,
            limit=_PER_ROUND,
        )
        found = self._seen({id_: each.metadata or {} for id_, each in answer.vectors.items()})
        return _counts(found, name)

    def _seen(self, found: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the metadata of records, from which the sets become known too."""
        records, _ = readable(found.items())
        self._sets.update({record.standard_set_id: _set_of(record) for record in records})
        return list(found.values())


def _set_of(record: StandardRecord) -> StandardSet:
    return StandardSet(
        id=record.standard_set_id,
        title=own_set_title(record),
        subject=record.subject,
        jurisdiction_id=record.jurisdiction_id,
        jurisdiction_title=record.jurisdiction_title,
        license=record.license,
        source_url=record.source_url,
    )


def _set_order(item: StandardSet) -> tuple[str, str, str, str]:
    return item.jurisdiction_title, item.subject, item.title, item.id


def _counts(found: Iterable[Mapping[str, Any]], name: str) -> Counter[str]:
    counts = Counter[str]()
    for fields in found:
        value = fields.get(name)
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        counts.update(each for each in values if isinstance(each, str))
    return counts
