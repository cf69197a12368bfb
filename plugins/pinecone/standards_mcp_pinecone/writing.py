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
from typing import TYPE_CHECKING, Any, Final, TypeVar

from typing_extensions import override

from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.records import StandardRecord, chunks

from .failures import PineconeUnavailableError
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
from .reading import PAGE, Reader

if TYPE_CHECKING:
    from pinecone import AsyncIndex, IndexModel

log = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 120.0
"""Seconds; if the service asks for a longer pause, the call fails at once."""
CREATION_TIMEOUT: Final = 300.0
_CREATION_PAUSE: Final = 1.0
_T = TypeVar("_T")


class Writer(Reader):
    """Reads and writes one namespace of an index. Every request has its own deadline."""

    write_pauses: Sequence[float] = (10, 20, 40, 60, 60)
    """Seconds to wait before each new attempt, if the quota of the minute is used up. After a lost
    connection, a timeout or a server error, only the first two apply."""
    _has_answered = False

    @override
    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        count = 0
        for batch in batches(records):
            for record in batch:
                if reason := refusal(record):
                    raise CatalogError(f"Pinecone cannot hold the record {record.id!r}: {reason}")
            # Embedding costs quota, so unchanged records are not sent.
            hashes = await self.hashes([record.id for record in batch])
            latest = {record.id: record for record in batch}.values()
            changed = [each for each in latest if hashes.get(each.id) != content_hash(each)]
            await self.write(changed)
            count += len(changed)
        return count

    async def write(self, batch: Sequence[StandardRecord]) -> None:
        """Write at most 96 records in one request, even if the index has them already."""
        if batch:
            lines = [to_pinecone(record) for record in batch]
            await self._with_retries(
                lambda index: index.upsert_records(namespace=self.namespace, records=lines)
            )

    async def hashes(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the `content_hash` of each record that the index has, "" if it was never set."""
        hashes: dict[str, str] = {}
        # The service also sends the vectors, so the answer for 100 records has 1 MB.
        for page in chunks(dict.fromkeys(ids), PAGE):
            metadata = await self._with_retries(partial(self._fetch_metadata, ids=page))
            hashes |= {id_: str(each.get(HASH_FIELD) or "") for id_, each in metadata.items()}
        return hashes

    async def ids(self) -> set[str]:
        """Return the ids of all records in the namespace."""
        ids, token = set[str](), None
        while token != "":
            page, token = await self._with_retries(partial(self.page_of_ids, token=token))
            ids.update(page)
        return ids

    @override
    async def delete(self, ids: Iterable[str]) -> int:
        present = list(await self.hashes(ids))
        for page in chunks(present, PAGE):
            await self._with_retries(partial(self._delete, ids=page))
        return len(present)

    async def _delete(self, index: AsyncIndex, ids: list[str]) -> None:
        await index.delete(ids=ids, namespace=self.namespace)

    async def _with_retries(self, call: Callable[[AsyncIndex], Awaitable[_T]]) -> _T:
        """Return the result of *call*, and retry it after temporary failures."""
        attempts = 0
        while True:
            try:
                async with self.connections.index() as index:
                    answer = await call(index)
            except PineconeUnavailableError as error:
                pauses = self._pauses(error)
                if attempts >= len(pauses):
                    raise
                pause = max(pauses[attempts], error.retry_after or 0)
                # Programs that were refused at one time must not retry at one time.
                seconds = pause * random.uniform(1, 1.25)  # noqa: S311
                log.warning("waiting %.0f seconds for Pinecone: %s", seconds, error)
                await asyncio.sleep(seconds)
                attempts += 1
            else:
                self._has_answered = True
                return answer

    def _pauses(self, error: PineconeUnavailableError) -> Sequence[float]:
        """Return the seconds to wait before each retry, or () if a retry cannot help.

        There is no retry before the first answer: then the address or the network is wrong, and
        waiting would only delay the message.
        """
        pauses = self.write_pauses
        if error.cause == "minute_quota":
            return pauses if (error.retry_after or 0) <= _LONGEST_PAUSE else ()
        is_trouble = error.cause in ("unreachable", "timeout", "server")
        return pauses[:2] if is_trouble and self._has_answered else ()


@dataclass(slots=True)
class Report:
    """Differences between local records and an index, and the result of an upload.

    Attributes:
        new: Ids that the index did not have.
        changed: Ids whose record in the index was different.
        unchanged: Number of records that were equal in the index.
        refused: Ids and reasons of the records that Pinecone cannot hold.
        extra: Ids that only the index has; an upload does not delete them.
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
        """Number of records that were compared or refused."""
        return len(self.new) + len(self.changed) + self.unchanged + len(self.refused)

    @property
    def complete(self) -> bool:
        """True if all changes were written."""
        return self.written == len(self.new) + len(self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """Options of a comparison or an upload.

    Attributes:
        dry_run: Report the differences, and write nothing.
        is_new: True if the index is empty or does not exist yet, so that all records are new.
        batch_size: Records in one request, at most 96.
        local_ids: Ids of all local records, if only some of them are compared.
        progress: Called with the report after each batch.
    """

    dry_run: bool = False
    is_new: bool = False
    batch_size: int = MAX_BATCH_RECORDS
    local_ids: Collection[str] = ()
    progress: Callable[[Report], None] = lambda _report: None

    async def run(self, records: Iterable[StandardRecord], client: Writer) -> Report:
        """Write the new and changed ones of *records*, and return the report.

        Records that Pinecone cannot hold are reported and skipped. After an interruption, another
        run writes the missing records.

        Raises:
            CatalogError: The index cannot be read or written.
        """
        report, seen = Report(), set[str]()
        ids_in_index = set[str]() if self.is_new else await client.ids()
        for batch in batches(_acceptable(records, seen, report), self.batch_size):
            hashes = await client.hashes([each.id for each in batch if each.id in ids_in_index])
            stale = [each for each in batch if hashes.get(each.id) != content_hash(each)]
            for record in stale:
                (report.changed if record.id in hashes else report.new).append(record.id)
            report.unchanged += len(batch) - len(stale)
            if not self.dry_run:
                await client.write(stale)
                report.written += len(stale)
            self.progress(report)
        report.extra = sorted(ids_in_index.difference(seen, self.local_ids))
        return report


def _acceptable(
    records: Iterable[StandardRecord], seen: set[str], report: Report
) -> Iterator[StandardRecord]:
    for record in records:
        reason = "another record has the same _id" if record.id in seen else refusal(record)
        if reason:
            report.refused.append((record.id, reason))
        else:
            seen.add(record.id)
            yield record


async def prepare_index(client: Writer, *, create: bool = False, dry_run: bool = False) -> bool:
    """Check that the index fits standards, and return True if it was missing.

    Args:
        create: Create a missing index, and wait until it is ready.
        dry_run: With *create*, return True for a missing index, but do not create it.

    Raises:
        CatalogError: The index has another model, another text field, or another host.
        PineconeUnavailableError: The index is missing and *create* is False, or Pinecone does
            not answer.
    """
    try:
        _check(client, await _describe(client))
    except PineconeUnavailableError as error:
        if error.cause != "index" or not create:
            raise
    else:
        return False
    if not dry_run:
        await _create(client)
    return True


def _check(client: Writer, index: IndexModel) -> None:
    name, host = client.connections.index_name, client.connections.host
    text_field: Any = index.schema.fields.get(TEXT_FIELD)
    model = getattr(text_field, "model", None)
    if model != MODEL:
        actual = f"the model {model!r}" if model else f"no text field {TEXT_FIELD!r}"
        raise CatalogError(
            f"The Pinecone index {name!r} has {actual}; an index for standards has the model "
            f"{MODEL!r} with the text field {TEXT_FIELD!r}. Set PINECONE_INDEX_NAME to another "
            "name, and create that index."
        )
    if host is not None and index.host is not None and host != index.host:
        raise CatalogError(
            f"PINECONE_HOST is {host}, and the index {name!r} is at {index.host}. Correct "
            "PINECONE_HOST, or remove it."
        )


async def _describe(client: Writer) -> IndexModel:
    async with client.connections.control() as control:
        return await control.indexes.describe(client.connections.index_name)


async def _create(client: Writer) -> None:
    name = client.connections.index_name
    async with client.connections.control() as control:
        await control.indexes.create_for_model(
            name=name,
            cloud="aws",  # the Starter plan offers this region only
            region="us-east-1",
            embed={"model": MODEL, "field_map": {"text": TEXT_FIELD}, "metric": "cosine"},
            timeout=-1,  # do not wait; the SDK would check only every five seconds
        )
    deadline = time.monotonic() + CREATION_TIMEOUT
    while not (await _describe(client)).status.ready:
        if time.monotonic() > deadline:
            raise PineconeUnavailableError(
                "timeout",
                f"The Pinecone index {name!r} was not ready after {CREATION_TIMEOUT:g} seconds. "
                "Look at Pinecone's console, and run the upload again.",
            )
        await asyncio.sleep(_CREATION_PAUSE)
