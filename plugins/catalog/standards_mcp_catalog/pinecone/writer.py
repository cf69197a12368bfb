"""Writing to a Pinecone index: only what changed, in batches, with pauses where quotas ask."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from standards_mcp_catalog.chunks import chunks
from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.records import StandardRecord

from .connection import Connections
from .errors import PineconeUnavailableError
from .lookup import FETCH_IDS, Finder
from .records import HASH_FIELD, batches, content_hash, refusal, to_pinecone

log = logging.getLogger(__name__)

DELETE_IDS: Final = 1000
_TROUBLE_ATTEMPTS: Final = 2
_LONGEST_PAUSE: Final = 120.0
"""Seconds; a service that asks for more patience than this is not waited for."""
_T = TypeVar("_T")


class Writer:
    """Writes to one namespace. Every request has the deadline of its own."""

    def __init__(self, connections: Connections, namespace: str) -> None:
        self._connections = connections
        self._namespace = namespace
        self._finder = Finder(connections, namespace)
        self._answered = False

    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        """Add or replace records and return how many changed.

        Raises:
            CatalogError: Pinecone cannot hold a record; none of its batch is written.
        """
        count = 0
        for batch in batches(records):
            # Embedding is what costs quota, so records that are there unchanged are not sent.
            known = await self.hashes([record.id for record in batch])
            latest = {record.id: record for record in batch}.values()
            changed = [record for record in latest if known.get(record.id) != content_hash(record)]
            await self.write(changed)
            count += len(changed)
        return count

    async def write(self, batch: Sequence[StandardRecord]) -> None:
        """Write at most 96 records in one request, whatever the index holds of them.

        Raises:
            CatalogError: Pinecone cannot hold one of them.
        """
        for record in batch:
            if reason := refusal(record):
                raise CatalogError(f"Pinecone cannot hold the record {record.id!r}: {reason}")
        if batch:
            # The last of two records with one id counts, as it would one after the other.
            lines = list({record.id: to_pinecone(record) for record in batch}.values())
            await self._with_retries(partial(self._send, lines))

    async def hashes(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the `content_hash` of those records that the index holds; "" where it has none."""
        known: dict[str, str] = {}
        for some in chunks(dict.fromkeys(ids), FETCH_IDS):
            found = await self._with_retries(partial(self._finder.metadata, some))
            known |= {id_: str(fields.get(HASH_FIELD) or "") for id_, fields in found.items()}
        return known

    async def ids(self) -> set[str]:
        """Return the ids of all records in the namespace."""
        known, token = await self._with_retries(partial(self._page, None))
        while token is not None:
            page, token = await self._with_retries(partial(self._page, token))
            known |= page
        return known

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete the records with these ids and return how many there were."""
        count = 0
        for some in chunks(dict.fromkeys(ids), DELETE_IDS):
            there = list(await self.hashes(some))
            count += len(there)
            if there:
                await self._with_retries(partial(self._delete, there))
        return count

    async def _send(self, lines: list[dict[str, Any]]) -> None:
        async with self._connections.index() as index:
            await index.upsert_records(namespace=self._namespace, records=lines)

    async def _delete(self, ids: list[str]) -> None:
        async with self._connections.index() as index:
            await index.delete(ids=ids, namespace=self._namespace)

    async def _page(self, token: str | None) -> tuple[set[str], str | None]:
        async with self._connections.index() as index:
            page = await index.list_paginated(
                limit=100, pagination_token=token, namespace=self._namespace
            )
        following = page.pagination.next if page.pagination is not None else None
        return {item.id for item in page.vectors if item.id}, following

    async def _with_retries(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Return what *call* returns, called again while the trouble is one that passes."""
        attempts = 0
        while True:
            try:
                answer = await call()
            except PineconeUnavailableError as error:
                pauses = self._pauses(error)
                if attempts >= len(pauses):
                    raise
                pause = max(pauses[attempts], error.retry_after or 0)
                # Programs that were refused together must not all come back together.
                seconds = pause * random.uniform(1, 1.25)  # noqa: S311
                log.warning("waiting %.0f seconds for Pinecone: %s", seconds, error)
                await asyncio.sleep(seconds)
                attempts += 1
            else:
                self._answered = True
                return answer

    def _pauses(self, error: PineconeUnavailableError) -> Sequence[float]:
        """Return the seconds to wait before each further attempt, none where it would not help.

        Before the first answer nothing is tried again: the address or the network is wrong then,
        and waiting would only delay the message.
        """
        pauses = self._connections.tuning.write_pauses
        if error.cause == "minute_quota":
            return pauses if (error.retry_after or 0) <= _LONGEST_PAUSE else ()
        is_trouble = error.cause in ("unreachable", "timeout", "server")
        return pauses[:_TROUBLE_ATTEMPTS] if is_trouble and self._answered else ()
