"""Open datasets in workers as a check, and keep the list of served datasets current."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from .manifests import DatasetError, Excluded, Source, manifests_in, read_source
from .workers.pool import OverdueError, Pool, UnavailableError
from .workers.tasks import Facts, check

SHORT_WAIT: Final = 2.0
"""Seconds that a call waits for datasets that it does not need."""
_CRASH_RETRY_SECONDS: Final = 300.0
"""Seconds until a dataset that crashed workers is opened again. It may crash two more."""


@dataclass(frozen=True, slots=True)
class Dataset(Source):
    """A dataset that was opened and can be searched."""

    facts: Facts


Entry: TypeAlias = Dataset | Excluded


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All datasets at one time. Immutable, so that they do not change during a call.

    Attributes:
        opening: Ids of the datasets that are being opened.
    """

    ready: Mapping[str, Dataset] = field(default_factory=dict[str, Dataset])
    excluded: tuple[Excluded, ...] = ()
    opening: frozenset[str] = frozenset()

    @property
    def entries(self) -> list[Entry]:
        """All opened or excluded datasets, sorted by id; a ready one before its duplicates."""
        return sorted([*self.ready.values(), *self.excluded], key=lambda entry: entry.id)


async def open_and_check(pool: Pool, source: Source, asks_encoder: bool = False) -> Entry:  # noqa: FBT001, FBT002  portals have no keywords
    """Open a dataset in a worker; return it as ready, or as excluded with the reason.

    Args:
        asks_encoder: As for `tasks.check`.
    """
    prefix = f"Index cannot be read: {source.files.index}"
    manifest, retry = source.manifest, _CRASH_RETRY_SECONDS
    cause: Exception
    try:
        facts = await pool.run(check, source.files, asks_encoder, seconds=pool.start_timeout)
        return Dataset(source.path, source.manifest, source.files, facts)
    except DatasetError as error:
        return _to_excluded(source, error)
    except UnavailableError as error:
        reason, cause = f"{prefix}: the worker that opens it ends", error
        if pool.is_failing:
            reason, retry = "No worker can be started; see the log", 0
    except OverdueError as error:
        reason, cause = f"{prefix}: opening it takes longer than {pool.start_timeout:g} s", error
    except Exception as error:  # noqa: BLE001  - the other datasets must be served
        reason = f"{prefix}: {type(error).__name__}"
        return Excluded(manifest.id, source.path, "index", reason, manifest, cause=error)
    retry_at = anyio.current_time() + retry
    return Excluded(manifest.id, source.path, "worker", reason, manifest, retry_at, cause)


def _to_excluded(source: Source, error: DatasetError) -> Excluded:
    """Return the entry of a dataset with this error."""
    kind = error.kind
    cause = error if kind in {"index", "metadata"} else None
    # The file vanished after the host had read its stamp, and may come back unchanged.
    retry_at = 0.0 if kind == "path" else None
    return Excluded(source.id, source.path, kind, error.reason, source.manifest, retry_at, cause)


def _is_due(entry: Entry | None) -> bool:
    """Return True if a dataset was never opened, or is to be opened again."""
    if isinstance(entry, Excluded):
        return entry.retry_at is not None and anyio.current_time() >= entry.retry_at
    return entry is None


def make_snapshot(entries: Iterable[Entry], opening: Collection[str] = ()) -> Snapshot:
    """Return a snapshot of datasets. Of several with the same id, the first one is served.

    Args:
        entries: The opened or excluded datasets, in the order of their paths.
        opening: Ids of datasets that are being opened. Opened datasets with these ids have to wait.
    """
    ready: dict[str, Dataset] = {}
    excluded: list[Excluded] = []
    for entry in entries:
        if isinstance(entry, Excluded):
            excluded.append(entry)
        elif entry.id not in opening and (first := ready.setdefault(entry.id, entry)) is not entry:
            reason = f"Duplicate id '{entry.id}': also in {first.path}"
            excluded.append(Excluded(entry.id, entry.path, "duplicate", reason, entry.manifest))
    return Snapshot(ready, tuple(excluded), frozenset(opening))


class Library:
    """Keeps a `Snapshot` current: a call reads the folders again if it is older than *max_age*.

    New datasets are opened in the background, so a dataset that takes long to open does not delay
    searches of the others.

    Args:
        roots: The folder of the manifests, then further folders that may contain files.
        group: The task group that reads and opens datasets, even if the caller is cancelled.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        pool: Pool,
        max_age: float,
        group: TaskGroup,
        log: logging.Logger,
    ) -> None:
        self._roots = roots
        self._pool = pool
        self._max_age = max_age
        self._group = group
        self._log = log
        self._read_at = -float("inf")
        self._pending_read: anyio.Event | None = None
        # In the order of the manifests; a source that was never opened has None.
        self._entries: dict[Source | Excluded, Entry | None] = {}
        self._opening: set[Source] = set()
        # One worker stays free for searches.
        self._limiter = anyio.CapacityLimiter(max(1, pool.size - 1))
        self._snapshot: Snapshot | None = None
        self._snapshot_changed = anyio.Event()

    async def snapshot(self, max_wait: float, dataset: str | None = None) -> Snapshot | None:
        """Read the folders again if necessary, wait for datasets, and return all of them.

        Args:
            max_wait: Seconds to wait for the reading, then for the opening. Datasets that are not
                opened by then are in `Snapshot.opening`.
            dataset: The dataset to wait for. By default, wait for all. So do callers that name an
                unknown one, but only briefly if others are ready.

        Returns:
            None if the folders have never been read.
        """
        if self._pending_read is None and anyio.current_time() - self._read_at >= self._max_age:
            self._pending_read = anyio.Event()
            self._group.start_soon(self._read, self._pending_read)
        if self._pending_read is not None:
            with anyio.move_on_after(max_wait):
                await self._pending_read.wait()
        if self._snapshot is None:
            return None
        is_known = dataset in self._snapshot.ready or dataset in self._snapshot.opening
        if dataset is not None and not is_known and self._snapshot.ready:
            max_wait = min(max_wait, SHORT_WAIT)
        with anyio.move_on_after(max_wait):
            while dataset in self._snapshot.opening if is_known else self._snapshot.opening:
                await self._snapshot_changed.wait()
        return self._snapshot

    def exclude(self, dataset: Dataset, error: DatasetError) -> None:
        """Stop serving a dataset if a search found that its encoder does not fit."""
        if error.kind == "encoder":
            for source, entry in self._entries.items():
                if entry is dataset:
                    self._entries[source] = _to_excluded(dataset, error)
            self._publish()

    async def _read(self, finished: anyio.Event) -> None:
        try:
            sources = await anyio.to_thread.run_sync(self._scan)
            self._entries = {
                source: source if isinstance(source, Excluded) else self._entries.get(source)
                for source in sources
            }
            for source, entry in self._entries.items():
                if isinstance(source, Source) and source not in self._opening and _is_due(entry):
                    self._opening.add(source)
                    self._group.start_soon(self._open, source)
            self._publish()
        except OSError as error:
            self._log.warning("datasets not read", extra={"reason": str(error)})
        finally:
            self._read_at = anyio.current_time()
            self._pending_read = None
            finished.set()

    def _scan(self) -> list[Source | Excluded]:
        return [read_source(path, self._roots) for path in manifests_in(self._roots[0])]

    async def _open(self, source: Source) -> None:
        async with self._limiter:
            entry = await open_and_check(self._pool, source)
        self._opening.discard(source)
        if source in self._entries:
            self._entries[source] = entry
            self._publish()

    def _publish(self) -> None:
        entries = [entry for entry in self._entries.values() if entry is not None]
        opening = {source.id for source, entry in self._entries.items() if entry is None}
        old = self._snapshot or Snapshot()
        self._snapshot = new = make_snapshot(entries, opening)
        if not new.opening and (old.opening or new.ready != old.ready):
            self._pool.warm([dataset.files for dataset in new.ready.values()])
        self._log_changes(old, new)
        self._snapshot_changed.set()
        self._snapshot_changed = anyio.Event()

    def _log_changes(self, old: Snapshot, new: Snapshot) -> None:
        logged = {(entry.path, entry.reason) for entry in old.excluded}
        for entry in new.excluded:
            if (entry.path, entry.reason) not in logged:
                self._log.error(
                    "dataset left out",
                    exc_info=entry.cause,
                    extra={
                        "dataset": entry.id,
                        "manifest": str(entry.path),
                        "error_type": entry.kind,
                        "reason": entry.reason,
                    },
                )
        for identifier, dataset in new.ready.items():
            if not dataset.facts.documents and old.ready.get(identifier) != dataset:
                self._log.warning("dataset has no documents", extra={"dataset": identifier})
