"""Write to a Pinecone index: only new and changed records, in batches, with pauses for quotas.

Nothing is remembered between runs: each run reads the state of the index, so that a run after an
interruption writes only the missing records.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.records import StandardRecord, chunks

from .failures import PineconeUnavailableError
from .lookup import FETCH_IDS, Reader
from .metadata import (
    HASH_FIELD,
    MAX_BATCH_RECORDS,
    MODEL,
    TEXT_FIELD,
    batches,
    content_hash,
    refusal,
    to_pinecone,
)

if TYPE_CHECKING:
    from pinecone import IndexModel

    from .client import PineconeClient

log = logging.getLogger(__name__)

DELETE_IDS: Final = 1000
_TROUBLE_ATTEMPTS: Final = 2
_LONGEST_PAUSE: Final = 120.0
"""Seconds; a service that asks for more patience than this is not waited for."""
_T = TypeVar("_T")


class Writer:
    """Writes to one namespace. Every request has the deadline of its own."""

    def __init__(self, reader: Reader) -> None:
        self._connections = reader.connections
        self._namespace = reader.namespace
        self._metadata = reader.metadata
        self._answered = False

    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        """Add or replace records and return how many changed.

        Raises:
            CatalogError: Pinecone cannot hold a record; none of its batch is written.
        """
        count = 0
        for batch in batches(records):
            # Embedding costs quota, so unchanged records are not sent.
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
        """Return the `content_hash` of the records in the index; "" if one lacks it."""
        known: dict[str, str] = {}
        # The service also sends the vectors, so a fetch of 100 records has 1 MB.
        for some in chunks(dict.fromkeys(ids), FETCH_IDS):
            found = await self._with_retries(partial(self._metadata, some))
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
        """Return the result of *call*, and retry it after temporary failures."""
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
        """Return the seconds to wait before each retry; it is empty if a retry cannot help.

        There is no retry before the first answer: then the address or the network is wrong, and
        waiting would only delay the message.
        """
        pauses = self._connections.tuning.write_pauses
        if error.cause == "minute_quota":
            return pauses if (error.retry_after or 0) <= _LONGEST_PAUSE else ()
        is_trouble = error.cause in ("unreachable", "timeout", "server")
        return pauses[:_TROUBLE_ATTEMPTS] if is_trouble and self._answered else ()


Progress: TypeAlias = Callable[["Report"], None]

CREATION_TIMEOUT: Final = 300.0
_CREATION_PAUSE: Final = 1.0


class IndexMismatchError(CatalogError):
    """There is an index of this name, and it is not one for standards."""


@dataclass(slots=True)
class Report:
    """Differences between records and a namespace of an index, and the result of an upload.

    Attributes:
        new: Ids that the index did not have.
        changed: Ids whose record the index had in another form.
        unchanged: Number of records that the index had before in the same form.
        refused: Ids and reasons of the records that Pinecone cannot hold.
        extra: Ids that only the index has; they are left alone.
        written: Number of written records.
    """

    new: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    unchanged: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    extra: list[str] = field(default_factory=list[str])
    written: int = 0

    @property
    def read(self) -> int:
        """Number of compared records."""
        return len(self.new) + len(self.changed) + self.unchanged + len(self.refused)

    @property
    def complete(self) -> bool:
        """True if all changes were written."""
        return self.written == len(self.new) + len(self.changed)


async def diff(
    records: Iterable[StandardRecord],
    client: PineconeClient,
    progress: Progress | None = None,
    *,
    is_missing: bool = False,
    held: Collection[str] = frozenset(),
) -> Report:
    """Return the differences between *records* and the index, and write nothing.

    Args:
        is_missing: The index does not exist yet, so that all records are new.
        held: Ids of all records that are here, where *records* are some of them only.

    Raises:
        CatalogError: The index cannot be read.
    """
    known = set[str]() if is_missing else await client.writer.ids()
    return await _transfer(records, client, known, MAX_BATCH_RECORDS, progress, held, write=False)


async def upload(
    records: Iterable[StandardRecord],
    client: PineconeClient,
    *,
    batch_size: int = MAX_BATCH_RECORDS,
    progress: Progress | None = None,
    held: Collection[str] = frozenset(),
) -> Report:
    """Write the new and changed ones of *records*.

    A record that Pinecone cannot hold is reported and stops nothing. Running it again after an
    interruption writes what is missing.

    Args:
        batch_size: Records in one request, at most 96.
        progress: Called with the report after each batch.
        held: Ids of all records that are here, where *records* are some of them only.

    Raises:
        CatalogError: The index cannot be written.
    """
    known = await client.writer.ids()
    return await _transfer(records, client, known, batch_size, progress, held, write=True)


async def prepare_index(
    client: PineconeClient,
    *,
    create: bool = False,
    dry_run: bool = False,
) -> bool:
    """Check that the index is one for standards, and return whether it had to be made.

    Args:
        create: Create a missing index, and wait until it is ready.
        dry_run: Only say whether it would be made.

    Raises:
        IndexMismatchError: Its model or its text field is another, or its host is.
        PineconeUnavailableError: The index is missing, or Pinecone does not answer.
    """
    try:
        _check(client, await _described(client))
    except PineconeUnavailableError as error:
        if error.cause != "index" or not create:
            raise
    else:
        return False
    if dry_run:
        return True
    async with client.connections.control() as control:
        await control.indexes.create_for_model(
            name=client.connections.index_name,
            cloud="aws",  # the Starter plan offers this region only
            region="us-east-1",
            embed={"model": MODEL, "field_map": {"text": TEXT_FIELD}, "metric": "cosine"},
            timeout=-1,  # it would wait for five seconds at a time
        )
    await _wait_until_ready(client)
    return True


async def _transfer(  # noqa: PLR0913  - the arguments of `diff` and of `upload`
    records: Iterable[StandardRecord],
    client: PineconeClient,
    known: set[str],
    size: int,
    progress: Progress | None,
    held: Collection[str],
    *,
    write: bool,
) -> Report:
    """Compare *records* with the index, which has the ids *known*, batch by batch."""
    report, seen = Report(), set[str]()
    for batch in batches(_acceptable(records, seen, report), size):
        hashes = await client.writer.hashes([each.id for each in batch if each.id in known])
        stale = [each for each in batch if hashes.get(each.id) != content_hash(each)]
        for record in stale:
            (report.changed if record.id in hashes else report.new).append(record.id)
        report.unchanged += len(batch) - len(stale)
        if write:
            await client.writer.write(stale)
            report.written += len(stale)
        if progress is not None:
            progress(report)
    report.extra = sorted(known.difference(seen, held))
    return report


def _acceptable(
    records: Iterable[StandardRecord], seen: set[str], report: Report
) -> Iterator[StandardRecord]:
    for record in records:
        reason = refusal(record)
        if record.id in seen:
            reason = "another record has the same _id"
        if reason:
            report.refused.append((record.id, reason))
            continue
        seen.add(record.id)
        yield record


async def _described(client: PineconeClient) -> IndexModel:
    async with client.connections.control() as control:
        return await control.indexes.describe(client.connections.index_name)


def _check(client: PineconeClient, index: IndexModel) -> None:
    name, host = client.connections.index_name, client.connections.host
    text_field: Any = index.schema.fields.get(TEXT_FIELD)
    model = getattr(text_field, "model", None)
    if model != MODEL:
        found = f"the model {model!r}" if model else f"no text field {TEXT_FIELD!r}"
        raise IndexMismatchError(
            f"The Pinecone index {name!r} has {found}; an index for standards has the model "
            f"{MODEL!r} with the text field {TEXT_FIELD!r}. Set PINECONE_INDEX_NAME to another "
            "name and create that one."
        )
    if host is not None and index.host is not None and host != index.host:
        raise IndexMismatchError(
            f"PINECONE_HOST is {host}, and the index {name!r} is at {index.host}. Correct it, or "
            "leave it out."
        )


async def _wait_until_ready(client: PineconeClient) -> None:
    ends = time.monotonic() + CREATION_TIMEOUT
    while time.monotonic() < ends:
        if (await _described(client)).status.ready:
            return
        await asyncio.sleep(_CREATION_PAUSE)
    raise PineconeUnavailableError(
        "timeout",
        f"The Pinecone index {client.connections.index_name!r} was not ready after "
        f"{CREATION_TIMEOUT:g} seconds. Look at Pinecone's console, and run the upload again.",
    )
