"""Bringing standards into a Pinecone index: only what is new or changed, safe to interrupt.

Nothing is remembered between runs: what the index holds is read from it, so that a run that was
killed goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.records import StandardRecord

from .client import MODEL, TEXT_FIELD, PineconeClient
from .errors import PineconeUnavailableError
from .records import MAX_BATCH_RECORDS, batches, content_hash, refusal

if TYPE_CHECKING:
    from pinecone import IndexModel

Progress: TypeAlias = Callable[["Report"], None]

CREATION_TIMEOUT: Final = 300.0
_CREATION_PAUSE: Final = 1.0
_COUNT_PAUSES: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class IndexMismatchError(CatalogError):
    """There is an index of this name, and it is not one for standards."""


@dataclass(slots=True)
class Report:
    """How records and a namespace of an index differ, and what was done about it.

    Attributes:
        new: Ids that the index did not have.
        changed: Ids whose record the index had in another form.
        unchanged: How many records the index had already.
        refused: Ids and reasons of the records that Pinecone cannot hold.
        extra: Ids that only the index has; they are left alone.
        aside: How many records of the index are held here too, but were not looked at.
        written: How many records were written.
        counted: How many records the index says that it has afterwards; None when nothing was
            written.
    """

    new: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    unchanged: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    extra: list[str] = field(default_factory=list[str])
    aside: int = 0
    written: int = 0
    counted: int | None = None

    @property
    def read(self) -> int:
        """How many records were looked at."""
        return len(self.new) + len(self.changed) + self.unchanged + len(self.refused)

    @property
    def expected(self) -> int:
        """How many records the index should have after everything was written."""
        looked_at = len(self.new) + len(self.changed) + self.unchanged
        return looked_at + len(self.extra) + self.aside

    @property
    def complete(self) -> bool:
        """Whether everything was written and the index confirms the number."""
        return self.written == len(self.new) + len(self.changed) and self.counted in (
            None,
            self.expected,
        )


async def diff(
    records: Iterable[StandardRecord],
    client: PineconeClient,
    progress: Progress | None = None,
    *,
    is_missing: bool = False,
    held: Collection[str] = frozenset(),
) -> Report:
    """Return how *records* differ from what the index holds, and write nothing.

    Args:
        is_missing: There is no index yet, so that everything is new.
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
    """Write those of *records* that the index does not have as they are, and count afterwards.

    A record that Pinecone cannot hold is reported and stops nothing. Running it again after an
    interruption writes what is missing.

    Args:
        batch_size: Records in one request, at most 96.
        progress: Told the state after each batch.
        held: Ids of all records that are here, where *records* are some of them only.

    Raises:
        CatalogError: The index cannot be written.
    """
    known = await client.writer.ids()
    report = await _transfer(records, client, known, batch_size, progress, held, write=True)
    if report.written:
        report.counted = await _count(client, report.expected)
    return report


async def prepare_index(
    client: PineconeClient,
    *,
    create: bool = False,
    dry_run: bool = False,
    cloud: str = "aws",
    region: str = "us-east-1",
) -> bool:
    """Check that the index is one for standards, and return whether it had to be made.

    Args:
        create: Make the index when there is none, and wait until it is ready.
        dry_run: Only say whether it would be made.
        cloud: Where to make it; the Starter plan offers ``aws`` in ``us-east-1`` only.

    Raises:
        IndexMismatchError: Its model or its text field is another, or its host is.
        PineconeUnavailableError: There is no index, or Pinecone does not answer.
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
            cloud=cloud,
            region=region,
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
    """Compare *records* with the index, which has those with the ids *known*, batch by batch."""
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
    others = known - seen
    report.extra = sorted(others.difference(held))
    report.aside = len(others) - len(report.extra)
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


async def _count(client: PineconeClient, expected: int) -> int:
    """Return how many records the index has, asked again for a minute while it is not *expected*.

    The index is eventually consistent.
    """
    counted = 0
    for pause in _COUNT_PAUSES:
        await asyncio.sleep(pause)
        try:
            counted = (await client.stats()).records
        except PineconeUnavailableError:
            if pause == _COUNT_PAUSES[-1]:
                raise
            continue
        if counted == expected:
            break
    return counted
