"""The datasets in the folders: found, checked, and looked at again while calls come."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from .errors import DatasetError, Kind
from .manifests import ENDING, NAME, Source, find_files, read_manifest
from .workers.pool import OverdueError, Pool, UnavailableError
from .workers.tasks import Facts, inspect

RETRY: Final = 30.0
"""Seconds after which what may have passed is tried again, although no file has changed."""
RETRY_OF_CRASH: Final = 300.0
"""The same for what ended workers: another try may end two more."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that is served."""

    source: Source
    facts: Facts

    @property
    def id(self) -> str:
        """What searches name it by."""
        return self.source.manifest.id


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A dataset that is not served.

    Attributes:
        id: The manifest's, or the folder's name.
        path: The manifest.
        source: What is known of it.
        retry_at: When it is tried again though no file has changed; None: never.
        cause: What was raised by what reads the files.
    """

    id: str
    path: Path
    kind: Kind
    reason: str
    source: Source | None = None
    retry_at: float | None = None
    cause: BaseException | None = field(default=None, compare=False, repr=False)


Entry: TypeAlias = Dataset | LeftOut


@dataclass(frozen=True, slots=True)
class Shelf:
    """All datasets at one time. It does not change: a call keeps the one that it began with."""

    ready: Mapping[str, Dataset] = field(default_factory=dict[str, Dataset])
    left_out: tuple[LeftOut, ...] = ()

    @property
    def entries(self) -> list[Entry]:
        """All datasets by id; one that is served before what else has its id."""
        return sorted([*self.ready.values(), *self.left_out], key=lambda each: each.id)


def manifests_in(root: Path) -> list[Path]:
    """Return the manifests of a folder, in order. A missing folder has none."""
    found = [*root.glob(f"*/{NAME}"), *root.glob(f"*{ENDING}")]
    return sorted(path for path in found if path.is_file())


def read_source(path: Path, roots: Sequence[Path]) -> Source | LeftOut:
    """Return the dataset of a manifest, as far as its own text and the names of files tell.

    Args:
        roots: The folders that it and its files must be in.
    """
    real = [Path(os.path.realpath(root)) for root in roots]
    known = name_of(path)
    try:
        manifest = read_manifest(path)
        known = manifest.id
        return find_files(path, manifest, real)
    except DatasetError as error:
        return LeftOut(known, path, error.kind, error.reason, cause=error.__cause__)


def name_of(path: Path) -> str:
    """Return what a manifest that says no id is called."""
    return path.parent.name if path.name == NAME else path.name.removesuffix(ENDING)


async def look_into(pool: Pool, source: Source) -> Entry:
    """Open a dataset in a worker, and return it or why it is left out."""
    unread = f"Index cannot be read: {source.files.index}"
    try:
        return Dataset(source, await pool.run(inspect, source.files, seconds=pool.times.start))
    except DatasetError as error:
        cause = error if error.kind in {"index", "metadata"} else None
        retry = RETRY if error.is_passing else None
        return _left_out(source, error.kind, error.reason, cause, retry)
    except UnavailableError as error:
        if pool.is_failing:
            return _left_out(source, "worker", "No worker can be started; see the log", error, 0)
        reason = f"{unread}: the worker that opens it ends"
        return _left_out(source, "worker", reason, error, RETRY_OF_CRASH)
    except OverdueError as error:
        reason = f"{unread}: opening it takes longer than {pool.times.start:g} s"
        return _left_out(source, "worker", reason, error, RETRY_OF_CRASH)
    except Exception as error:  # noqa: BLE001  - the others shall be served
        return _left_out(source, "index", f"{unread}: {type(error).__name__}", error, None)


def _left_out(
    source: Source, kind: Kind, reason: str, cause: BaseException | None, retry: float | None
) -> LeftOut:
    retry_at = None if retry is None else anyio.current_time() + retry
    return LeftOut(source.manifest.id, source.path, kind, reason, source, retry_at, cause)


class Library:
    """Keeps a `Shelf` that is as old as *seconds* at most while calls come.

    Args:
        roots: Where manifests are looked for, and further folders that files may be in.
    """

    def __init__(
        self, roots: Sequence[Path], pool: Pool, seconds: float, log: logging.Logger
    ) -> None:
        self._roots = roots
        self._pool = pool
        self._seconds = seconds
        self._log = log
        self._looked_at = -float("inf")
        self._look: anyio.Event | None = None
        self._shelf: Shelf | None = None

    async def current(self, group: TaskGroup, patience: float | None) -> Shelf | None:
        """Return the datasets as they are now, or None while they are not known yet.

        Args:
            group: Where the folders are looked at; a caller may leave meanwhile.
            patience: How long to wait for that, in seconds; None is for ever. Then what was known
                before counts.
        """
        if self._look is None and anyio.current_time() - self._looked_at >= self._seconds:
            self._look = anyio.Event()
            group.start_soon(self._refresh, self._look)
        if self._look is not None:
            with anyio.move_on_after(patience):
                await self._look.wait()
        return self._shelf

    async def _refresh(self, done: anyio.Event) -> None:
        try:
            await self._reload()
        except OSError as error:
            self._log.warning("datasets not read", extra={"reason": str(error)})
        finally:
            self._looked_at = anyio.current_time()
            self._look = None
            done.set()

    async def _reload(self) -> None:
        found = await anyio.to_thread.run_sync(self._scan)
        before = self._shelf or Shelf()
        known = {each.source: each for each in before.entries if each.source is not None}
        entries: list[Entry | None] = [None] * len(found)
        limiter = anyio.CapacityLimiter(self._pool.size)

        async def look(position: int, source: Source) -> None:
            async with limiter:
                entries[position] = await look_into(self._pool, source)

        async with anyio.create_task_group() as group:
            for position, each in enumerate(found):
                if isinstance(each, LeftOut):
                    entries[position] = each
                elif _counts_still(kept := known.get(each)):
                    entries[position] = kept
                else:
                    group.start_soon(look, position, each)
        shelf = shelved(each for each in entries if each is not None)
        if shelf.ready != before.ready:
            self._pool.warm([each.source.files for each in shelf.ready.values()])
        self._tell(before, shelf)
        self._shelf = shelf

    def _scan(self) -> list[Source | LeftOut]:
        return [read_source(path, self._roots) for path in manifests_in(self._roots[0])]

    def _tell(self, before: Shelf, now: Shelf) -> None:
        told = {(each.path, each.reason) for each in before.left_out}
        for each in now.left_out:
            if (each.path, each.reason) not in told:
                self._log.error(
                    "dataset left out",
                    exc_info=each.cause,
                    extra={
                        "dataset": each.id,
                        "manifest": str(each.path),
                        "error_type": each.kind,
                        "reason": each.reason,
                    },
                )


def _counts_still(entry: Entry | None) -> bool:
    if isinstance(entry, LeftOut):
        # Of two with one id, the other may be gone.
        return entry.kind != "duplicate" and (
            entry.retry_at is None or anyio.current_time() < entry.retry_at
        )
    return entry is not None


def shelved(entries: Iterable[Entry]) -> Shelf:
    """Return a shelf of datasets in the order of their paths: of one id, the first is served."""
    ready: dict[str, Dataset] = {}
    left_out: list[LeftOut] = []
    for each in entries:
        if isinstance(each, LeftOut):
            left_out.append(each)
        elif (first := ready.setdefault(each.id, each)) is not each:
            reason = f"Duplicate id '{each.id}': also in {first.source.path}"
            left_out.append(LeftOut(each.id, each.source.path, "duplicate", reason, each.source))
    return Shelf(ready, tuple(left_out))
