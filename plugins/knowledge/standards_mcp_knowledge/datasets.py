"""Open datasets in workers as a check, and keep the list of served datasets current."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from .manifests import DatasetError, LeftOut, Source, manifests_in, read_source
from .workers.pool import OverdueError, Pool, UnavailableError
from .workers.tasks import Facts, inspect

if TYPE_CHECKING:
    from .manifests import Files
    from .workers.opened import Opened

_RETRY_OF_CRASH: Final = 300.0
"""Seconds until a dataset that crashed workers is opened again. It may crash two more."""


@dataclass(frozen=True, slots=True)
class Dataset(Source):
    """A dataset that was opened and can be searched."""

    facts: Facts


Entry: TypeAlias = Dataset | LeftOut


@dataclass(frozen=True, slots=True)
class Shelf:
    """All datasets at one time. Immutable, so that they do not change during a call.

    Attributes:
        opening: Ids of the datasets that are being opened.
    """

    ready: Mapping[str, Dataset] = field(default_factory=dict[str, Dataset])
    left_out: tuple[LeftOut, ...] = ()
    opening: frozenset[str] = frozenset()

    @property
    def entries(self) -> list[Entry]:
        """All opened or excluded datasets, sorted by id; a ready one before its duplicates."""
        return sorted([*self.ready.values(), *self.left_out], key=lambda entry: entry.id)


async def look_into(
    pool: Pool, source: Source, look: Callable[[Opened, Files], Facts] = inspect
) -> Entry:
    """Open a dataset in a worker; return it as ready, or as excluded with the reason.

    Args:
        look: The function of `tasks` that opens the dataset.
    """
    unread = f"Index cannot be read: {source.files.index}"
    manifest, retry = source.manifest, _RETRY_OF_CRASH
    cause: Exception
    try:
        facts = await pool.run(look, source.files, seconds=pool.times.start)
        return Dataset(source.path, source.manifest, source.files, facts)
    except DatasetError as error:
        return _breaking(source, error)
    except UnavailableError as error:
        reason, cause = f"{unread}: the worker that opens it ends", error
        if pool.is_failing:
            reason, retry = "No worker can be started; see the log", 0
    except OverdueError as error:
        reason, cause = f"{unread}: opening it takes longer than {pool.times.start:g} s", error
    except Exception as error:  # noqa: BLE001  - the other datasets must be served
        reason = f"{unread}: {type(error).__name__}"
        return LeftOut(manifest.id, source.path, "index", reason, manifest, cause=error)
    retry_at = anyio.current_time() + retry
    return LeftOut(manifest.id, source.path, "worker", reason, manifest, retry_at, cause)


def _breaking(source: Source, error: DatasetError) -> LeftOut:
    """Return the entry of a dataset with this error."""
    kind = error.kind
    cause = error if kind in {"index", "metadata"} else None
    # The file vanished after the host had read its stamp, and may come back unchanged.
    retry_at = 0.0 if kind == "path" else None
    return LeftOut(source.id, source.path, kind, error.reason, source.manifest, retry_at, cause)


def shelved(entries: Iterable[Entry], opening: Collection[str] = ()) -> Shelf:
    """Return a snapshot of datasets. Of several with the same id, the first one is served.

    Args:
        entries: The opened or excluded datasets, in the order of their paths.
        opening: Ids of datasets that are being opened. Opened ones with the same id have to wait.
    """
    ready: dict[str, Dataset] = {}
    left_out: list[LeftOut] = []
    for entry in entries:
        if isinstance(entry, LeftOut):
            left_out.append(entry)
        elif entry.id not in opening and (first := ready.setdefault(entry.id, entry)) is not entry:
            reason = f"Duplicate id '{entry.id}': also in {first.path}"
            left_out.append(LeftOut(entry.id, entry.path, "duplicate", reason, entry.manifest))
    return Shelf(ready, tuple(left_out), frozenset(opening))


class Library:
    """Keeps a `Shelf` current: a call reads the folders again if it is older than *seconds*.

    New datasets are opened in the background, so a
    dataset that takes long to open does not delay searches of the others.

    Args:
        roots: The folder of the manifests, then further folders that may contain files.
        group: The task group that reads and opens datasets, even if the caller is cancelled.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        pool: Pool,
        seconds: float,
        group: TaskGroup,
        log: logging.Logger,
    ) -> None:
        self._roots = roots
        self._pool = pool
        self._seconds = seconds
        self._group = group
        self._log = log
        self._read_at = -float("inf")
        self._reading: anyio.Event | None = None
        self._sources: Sequence[Source | LeftOut] = ()
        self._checked: dict[Source, Entry] = {}
        self._opening: set[Source] = set()
        # One worker stays free for searches.
        self._limiter = anyio.CapacityLimiter(max(1, pool.size - 1))
        self._shelf: Shelf | None = None
        self._news = anyio.Event()

    async def current(self, patience: float) -> Shelf | None:
        """Read the folders again if necessary, and return the datasets; None before the first time.

        Args:
            patience: Seconds to wait for the reading; then the previous datasets are returned.
        """
        if self._reading is None and anyio.current_time() - self._read_at >= self._seconds:
            self._reading = anyio.Event()
            self._group.start_soon(self._read, self._reading)
        if self._reading is not None:
            with anyio.move_on_after(patience):
                await self._reading.wait()
        return self._shelf

    async def settled(self, patience: float | None, dataset: str | None = None) -> Shelf:
        """Wait until *dataset* is opened, by default all datasets, and return all datasets.

        Args:
            patience: Seconds to wait; None for no limit. A timeout is not an error.
        """
        with anyio.move_on_after(patience):
            while self._shelf is None or (
                self._shelf.opening if dataset is None else dataset in self._shelf.opening
            ):
                await self._news.wait()
        return self._shelf or Shelf()

    def leave_out(self, dataset: Dataset, error: DatasetError) -> None:
        """Stop serving a dataset if a search found that its encoder does not fit."""
        if error.kind == "encoder":
            for source, entry in self._checked.items():
                if entry is dataset:
                    self._checked[source] = _breaking(source, error)
            self._publish()

    async def _read(self, done: anyio.Event) -> None:
        try:
            self._sources = await anyio.to_thread.run_sync(self._scan)
            valid = [source for source in self._sources if isinstance(source, Source)]
            self._checked = {
                source: self._checked[source] for source in valid if source in self._checked
            }
            for source in valid:
                if source not in self._opening and self._needs_check(source):
                    self._opening.add(source)
                    self._group.start_soon(self._open, source)
            self._publish()
        except OSError as error:
            self._log.warning("datasets not read", extra={"reason": str(error)})
        finally:
            self._read_at = anyio.current_time()
            self._reading = None
            done.set()

    def _scan(self) -> list[Source | LeftOut]:
        return [read_source(path, self._roots) for path in manifests_in(self._roots[0])]

    def _needs_check(self, source: Source) -> bool:
        entry = self._checked.get(source)
        if isinstance(entry, LeftOut):
            return entry.retry_at is not None and anyio.current_time() >= entry.retry_at
        return entry is None

    async def _open(self, source: Source) -> None:
        async with self._limiter:
            entry = await look_into(self._pool, source)
        self._opening.discard(source)
        if source in self._sources:
            self._checked[source] = entry
            self._publish()

    def _publish(self) -> None:
        entries: list[Entry] = []
        opening: set[str] = set()
        for source in self._sources:
            entry = source if isinstance(source, LeftOut) else self._checked.get(source)
            if entry is not None:
                entries.append(entry)
            elif isinstance(source, Source):
                opening.add(source.id)
        before = self._shelf or Shelf()
        self._shelf = now = shelved(entries, opening)
        if not now.opening and (before.opening or now.ready != before.ready):
            self._pool.warm([dataset.files for dataset in now.ready.values()])
        self._log_changes(before, now)
        self._news.set()
        self._news = anyio.Event()

    def _log_changes(self, before: Shelf, now: Shelf) -> None:
        logged = {(entry.path, entry.reason) for entry in before.left_out}
        for entry in now.left_out:
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
        for identifier, dataset in now.ready.items():
            if not dataset.facts.documents and before.ready.get(identifier) != dataset:
                self._log.warning("dataset has no documents", extra={"dataset": identifier})
