"""Which subjects, levels and places a Pinecone index holds; the service has no call for that.

A sample of the records shows what is common. The subjects, which decide what a search is
restricted to, and the values of any field that is asked for are then completed: records are fetched
that have other values than those known, until there are no more.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from standards_mcp_catalog.base import Facets, FieldValues, StandardSets
from standards_mcp_catalog.sets import StandardSet

from .connection import Connections
from .records import readable

if TYPE_CHECKING:
    from pinecone import AsyncIndex

log = logging.getLogger(__name__)

SAMPLE: Final = 100
"""Records of the sample. Their ids are the first in order, which for GUIDs is any order."""
MOST_ROUNDS: Final = 20
_MOST_DISTINCT: Final = 2 / 3  # of the sample: beyond it nearly every record has its own value
_PER_ROUND: Final = 20


class FacetReader:
    """Takes the sample once in a while, and keeps what it and the search for more showed."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self._connections = connections
        self._namespace = namespace
        self._sample: Sequence[Mapping[str, Any]] = ()
        self._is_whole = False
        self._sampled_at = -math.inf
        self._known: dict[str, FieldValues] = {}
        self._sets: dict[str, StandardSet] = {}

    async def facets(self) -> Facets:
        """Return the facets, at most as old as the tuning says."""
        subjects = await self.values("subject")
        return Facets(
            subjects=subjects.counts,
            education_levels=_counts(self._sample, "education_levels"),
            jurisdictions=_counts(self._sample, "jurisdiction_title"),
            standard_sets=_counts(self._sample, "standard_set_title"),
        )

    async def values(self, name: str) -> FieldValues:
        """Return the values of a field, at most as old as the tuning says."""
        async with self._connections.session.facets:
            age = time.monotonic() - self._sampled_at
            is_old = age > self._connections.tuning.facets_lifetime
            known = None if is_old else self._known.get(name)
            if known is None:
                async with self._connections.index() as index:
                    if is_old:
                        await self._take_sample(index)
                    known = self._known[name] = await self._values(index, name)
            return known

    async def sets(self) -> StandardSets:
        """Return the standard sets, at most as old as the tuning says."""
        ids = await self.values("standard_set_id")
        counts, known = ids.counts, self._sets
        found = (replace(known[id_], records=counts[id_]) for id_ in counts if id_ in known)
        return StandardSets(
            sets=tuple(sorted(found, key=StandardSet.order)),
            complete=ids.complete,
            counted=ids.counted,
        )

    async def _take_sample(self, index: AsyncIndex) -> None:
        started = time.monotonic()
        page = await index.list_paginated(limit=SAMPLE, namespace=self._namespace)
        found: dict[str, Mapping[str, Any]] = {}
        if ids := [item.id for item in page.vectors if item.id]:
            answer = await index.fetch(ids=ids, namespace=self._namespace)
            found = {id_: vector.metadata or {} for id_, vector in answer.vectors.items()}
        self._sample, self._sampled_at = list(found.values()), started
        self._known, self._sets = {}, _sets_of(found)
        self._is_whole = page.pagination is None or not page.pagination.next

    async def _values(self, index: AsyncIndex, name: str) -> FieldValues:
        """Return the values in the sample, and those that it did not show as far as time allows."""
        from pinecone import PineconeError  # noqa: PLC0415  loaded with the connection

        counts = _counts(self._sample, name)
        complete = self._is_whole
        if not complete and len(counts) <= _MOST_DISTINCT * SAMPLE:
            try:
                async with asyncio.timeout(self._connections.deadline / 2):
                    complete = await self._complete(index, name, counts)
            except (PineconeError, TimeoutError) as error:
                log.warning("the values of %s are incomplete: %s", name, type(error).__name__)
        return FieldValues(counts=counts, complete=complete, counted=self._is_whole)

    async def _complete(self, index: AsyncIndex, name: str, counts: Counter[str]) -> bool:
        """Add further values to *counts*, and return whether there are no others for certain.

        A list with a known value is not among the others, whatever else it holds.
        """
        seen = list(self._sample)
        for _ in range(MOST_ROUNDS):
            records = await self._others(index, name, counts)
            found = _counts(records, name)
            if not found.keys() - counts.keys():
                return not any(isinstance(each.get(name), list) for each in seen)
            seen += records
            counts.update(found)
        return False

    async def _others(
        self, index: AsyncIndex, name: str, known: Iterable[str]
    ) -> Sequence[Mapping[str, Any]]:
        await self._connections.session.metadata_calls.wait()
        listed = sorted(known)
        answer = await index.fetch_by_metadata(
            filter={name: {"$nin": listed} if listed else {"$exists": True}},
            namespace=self._namespace,
            limit=_PER_ROUND,
        )
        found = {id_: vector.metadata or {} for id_, vector in answer.vectors.items()}
        self._sets |= _sets_of(found)
        return list(found.values())


def _sets_of(found: Mapping[str, Mapping[str, Any]]) -> dict[str, StandardSet]:
    return {record.standard_set_id: StandardSet.of(record) for record in readable(found.items())[0]}


def _counts(found: Iterable[Mapping[str, Any]], name: str) -> Counter[str]:
    counts = Counter[str]()
    for fields in found:
        value = fields.get(name)
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        counts.update(each for each in values if isinstance(each, str))
    return counts
