"""Keeps what is known of the datasets as new as calls need it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from .datasets import (
    Entry,
    LeftOut,
    Shelf,
    counts_still,
    left_out_for,
    look_into,
    manifests_in,
    read_source,
    shelved,
)
from .errors import DatasetError
from .manifests import Source
from .workers.pool import Pool


class Library:
    """Keeps a `Shelf` that is as old as *seconds* at most while calls come.

    The folders are read for a call. What is new in them is opened beside it: one dataset that
    takes long to open keeps nobody from those that are open.

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
        self._read_at = -float("inf")
        self._reading: anyio.Event | None = None
        self._found: Sequence[Source | LeftOut] = ()
        self._known: dict[Source, Entry] = {}
        self._opening: set[Source] = set()
        # One worker is left to those who search.
        self._limiter = anyio.CapacityLimiter(max(1, pool.size - 1))
        self._shelf: Shelf | None = None
        self._news = anyio.Event()

    async def current(self, group: TaskGroup, patience: float) -> Shelf | None:
        """Return the datasets as they are now, or None while nobody has read the folders.

        Args:
            group: Where that is done; a caller may leave meanwhile.
            patience: How long to wait for it, in seconds. Then what was known before counts.
        """
        if self._reading is None and anyio.current_time() - self._read_at >= self._seconds:
            self._reading = anyio.Event()
            group.start_soon(self._read, group, self._reading)
        if self._reading is not None:
            with anyio.move_on_after(patience):
                await self._reading.wait()
        return self._shelf

    async def settled(self, patience: float | None, dataset: str | None = None) -> Shelf:
        """Return the datasets once it is known of one, or of all, whether they are right.

        Args:
            patience: How long to wait for it, in seconds; None is for ever.
        """
        with anyio.move_on_after(patience):
            while self._shelf is None or (
                self._shelf.opening if dataset is None else dataset in self._shelf.opening
            ):
                await self._news.wait()
        return self._shelf or Shelf()

    def leave_out(self, source: Source, error: DatasetError) -> None:
        """Serve a dataset no more if its encoder does not fit it, as only a search can find."""
        if error.kind == "encoder" and not error.is_passing and source in self._known:
            self._known[source] = left_out_for(source, error)
            self._publish()

    async def _read(self, group: TaskGroup, done: anyio.Event) -> None:
        try:
            self._found = await anyio.to_thread.run_sync(self._scan)
            sources = [each for each in self._found if isinstance(each, Source)]
            self._known = {each: self._known[each] for each in sources if each in self._known}
            for each in sources:
                if each not in self._opening and not counts_still(self._known.get(each)):
                    self._opening.add(each)
                    group.start_soon(self._open, each)
            self._publish()
        except OSError as error:
            self._log.warning("datasets not read", extra={"reason": str(error)})
        finally:
            self._read_at = anyio.current_time()
            self._reading = None
            done.set()

    def _scan(self) -> list[Source | LeftOut]:
        return [read_source(path, self._roots) for path in manifests_in(self._roots[0])]

    async def _open(self, source: Source) -> None:
        async with self._limiter:
            entry = await look_into(self._pool, source)
        self._opening.discard(source)
        if source in self._found:
            self._known[source] = entry
            self._publish()

    def _publish(self) -> None:
        entries = [
            each if isinstance(each, LeftOut) else self._known.get(each) for each in self._found
        ]
        unknown = {
            each.manifest.id
            for each in self._found
            if isinstance(each, Source) and each not in self._known
        }
        before = self._shelf or Shelf()
        self._shelf = now = shelved((each for each in entries if each is not None), unknown)
        if not now.opening and (before.opening or now.ready != before.ready):
            self._pool.warm([each.source.files for each in now.ready.values()])
        self._tell(before, now)
        self._news.set()
        self._news = anyio.Event()

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
        for identifier, dataset in now.ready.items():
            if not dataset.facts.documents and before.ready.get(identifier) != dataset:
                self._log.warning("dataset has no documents", extra={"dataset": identifier})
