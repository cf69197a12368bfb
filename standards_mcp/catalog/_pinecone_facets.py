"""Which subjects, levels and places a Pinecone index holds; the service has no call for that.

A sample of the records shows what is common. The subjects, which decide what a search is
restricted to, are then completed: a fetch of records whose subject is none of those known brings
a new one, until there is none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from . import Facets
from ._pinecone_connection import Connections

if TYPE_CHECKING:
    from pinecone import AsyncIndex

log = logging.getLogger(__name__)

SAMPLE: Final = 100
"""Records of the sample. Their ids are the first in order, which for GUIDs is any order."""
MOST_ROUNDS: Final = 20
_PER_ROUND: Final = 20


class Surveyor:
    """Takes the sample once in a while, and remembers what it showed."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self._connections = connections
        self._namespace = namespace
        self._known: tuple[float, Facets] | None = None

    async def facets(self) -> Facets:
        """Return the facets, at most as old as the tuning says."""
        async with self._connections.session.facets:
            now, lifetime = time.monotonic(), self._connections.tuning.facets_lifetime
            if self._known is None or now - self._known[0] > lifetime:
                self._known = now, await self._survey()
            return self._known[1]

    async def _survey(self) -> Facets:
        async with self._connections.index() as index:
            found = await self._sample(index)
            subjects = _counts(found, "subject")
            if subjects:
                await self._complete(index, subjects)
        return Facets(
            subjects=subjects,
            education_levels=_counts(found, "education_levels"),
            jurisdictions=_counts(found, "jurisdiction_title"),
            standard_sets=_counts(found, "standard_set_title"),
        )

    async def _sample(self, index: AsyncIndex) -> list[Mapping[str, Any]]:
        page = await index.list_paginated(limit=SAMPLE, namespace=self._namespace)
        ids = [item.id for item in page.vectors if item.id]
        if not ids:
            return []
        answer = await index.fetch(ids=ids, namespace=self._namespace)
        return [vector.metadata or {} for vector in answer.vectors.values()]

    async def _complete(self, index: AsyncIndex, subjects: Counter[str]) -> None:
        """Add the subjects that the sample did not show, as far as time allows."""
        from pinecone import PineconeError  # noqa: PLC0415  loaded with the connection

        try:
            async with asyncio.timeout(self._connections.deadline / 2):
                for _ in range(MOST_ROUNDS):
                    found = await self._others(index, subjects)
                    if not found.keys() - subjects.keys():
                        return
                    subjects.update(found)
        except (PineconeError, TimeoutError) as error:
            log.warning("the subjects of the index are incomplete: %s", type(error).__name__)

    async def _others(self, index: AsyncIndex, known: Iterable[str]) -> Counter[str]:
        await self._connections.session.metadata_calls.wait()
        answer = await index.fetch_by_metadata(
            filter={"subject": {"$nin": sorted(known)}},
            namespace=self._namespace,
            limit=_PER_ROUND,
        )
        return _counts((each.metadata or {} for each in answer.vectors.values()), "subject")


def _counts(found: Iterable[Mapping[str, Any]], name: str) -> Counter[str]:
    counts = Counter[str]()
    for fields in found:
        value = fields.get(name)
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        counts.update(each for each in values if isinstance(each, str))
    return counts
