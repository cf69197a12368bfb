"""All workers: they are kept running, each call gets one, and each has a deadline."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from standards_mcp_knowledge.errors import DatasetError
from standards_mcp_knowledge.manifests import Files

from . import tasks
from .worker import Worker, WorkerEndedError, WorkerGoneError

T = TypeVar("T")
Start: TypeAlias = Callable[[], Awaitable[Worker]]
State: TypeAlias = Literal["starting", "ready", "restarting", "stopped"]
_ATTEMPTS: Final = 2
_LAST_WORDS: Final = 2.0
"""Seconds that a worker has to end by itself once it has broken off an answer."""


class UnavailableError(Exception):
    """No worker runs that could be asked.

    Attributes:
        seconds: After which one may run again.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class OverdueError(Exception):
    """There was no answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long a pool waits, in seconds.

    Attributes:
        attempt: For a worker to become free, and for its answer.
        start: For a worker to load what it needs.
        hope: For a worker, where none can be started.
        most_between_starts: Pauses between starts that fail double up to this.
    """

    attempt: float = 10
    start: float = 60
    hope: float = 2
    most_between_starts: float = 30


@dataclass(eq=False, slots=True)
class _Waiter:
    """Somebody who wants a worker, or one worker."""

    only: Worker | None = None
    worker: Worker | None = None
    given: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Outcome:
    """What became of one attempt."""

    value: Any = None
    error: Exception | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


class Pool:
    """Workers that begin with the first call, and stay for as long as `serve` runs.

    Args:
        start: Starts one worker.

    Attributes:
        size: How many there are to be.
        restarts: How many workers were replaced.
    """

    def __init__(self, start: Start, size: int, log: logging.Logger, times: Times) -> None:
        self._start = start
        self.size = size
        self._log = log
        self.times = times
        self.restarts = 0
        self._tasks: TaskGroup | None = None
        self._wanted = anyio.Event()
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._waiters: deque[_Waiter] = deque()
        self._failing: dict[int, float] = {}
        self._warm: tuple[Files, ...] = ()

    @property
    def processes(self) -> int:
        """How many workers run."""
        return len(self._workers)

    @property
    def is_started(self) -> bool:
        """True if the workers have been asked to run."""
        return self._wanted.is_set()

    @property
    def state(self) -> State:
        """What the workers do: they are ready if all run."""
        if self._tasks is None or not self.is_started:
            return "stopped"
        if len(self._workers) == self.size:
            return "ready"
        return "restarting" if self.restarts or self._failing else "starting"

    @property
    def is_failing(self) -> bool:
        """Whether no worker runs, since none can be started."""
        return len(self._failing) == self.size

    def start(self) -> None:
        """Start the workers, as the first call does."""
        self._wanted.set()

    async def serve(self) -> None:
        """Keep all workers running once they have been started, until this is cancelled."""
        async with anyio.create_task_group() as group:
            self._tasks = group
            try:
                await self._wanted.wait()
                for number in range(self.size):
                    group.start_soon(self._keep, number)
                await anyio.sleep_forever()
            finally:
                self._tasks = None

    async def run(
        self, function: Callable[..., T], *arguments: Any, seconds: float | None = None
    ) -> T:
        """Run a function of `tasks` in a worker; in another one if the first ends.

        A worker that was gone before it began with the call does not count as one that ended. If
        all were gone, the call waits for the next one.

        Args:
            seconds: For a worker to become free, and for its answer, instead of `Times.attempt`.

        Raises:
            OverdueError: There was no answer in time. The worker that was asked has ended.
            UnavailableError: No worker runs, or two have ended.
            Exception: What the function raised.
        """
        self.start()
        seconds = seconds or self.times.attempt
        ended, gone = 0, 0
        while ended < _ATTEMPTS and gone <= self.size:
            try:
                return await self._attempt(None, seconds, function, *arguments)
            except WorkerGoneError:
                gone += 1
            except WorkerEndedError:
                ended += 1
        raise UnavailableError(self.next_start)

    def warm(self, datasets: Sequence[Files]) -> None:
        """Let every worker open these datasets, now and when it is started again."""
        self._warm = tuple(datasets)
        if self._tasks is not None:
            for worker in self._workers:
                self._tasks.start_soon(self._warm_one, worker, self._warm)

    async def _warm_one(self, worker: Worker, datasets: Sequence[Files]) -> None:
        # One by one, so that searches come between.
        wanted: list[tuple[Callable[..., object], object]] = [(tasks.close_others, datasets)]
        wanted += [(tasks.inspect, files) for files in datasets]
        for function, argument in wanted:
            try:
                await self._attempt(worker, self.times.start, function, argument)
            except (OverdueError, UnavailableError, WorkerEndedError):
                return
            except Exception:  # noqa: BLE001  - a search that needs it tells
                self._log.debug("worker not warmed", exc_info=True)

    async def _attempt(
        self, only: Worker | None, seconds: float, function: Callable[..., T], *arguments: Any
    ) -> T:
        outcome = _Outcome()
        worker = await self._acquired(only, seconds)
        if self._tasks is None:
            raise UnavailableError(self.next_start)
        # The exchange outlives a caller that gives up: the next one must not get its answer.
        self._tasks.start_soon(self._exchange, worker, outcome, seconds, function, arguments)
        await outcome.done.wait()
        if outcome.error is not None:
            raise outcome.error
        return cast("T", outcome.value)

    async def _exchange(
        self,
        worker: Worker,
        outcome: _Outcome,
        seconds: float,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> None:
        try:
            with anyio.move_on_after(seconds) as scope:
                outcome.value = await worker.run(function, *arguments)
            if scope.cancelled_caught:
                worker.end("it exceeded its deadline")
                outcome.error = OverdueError()
            self._offer(worker)
        except WorkerEndedError as error:
            outcome.error = error
            outcome.done.set()
            # It says by itself why it ends. Killing it now would hide that.
            with anyio.move_on_after(_LAST_WORDS):
                await worker.wait()
            worker.end("it broke off an answer")
        except Exception as error:  # noqa: BLE001  - the caller raises it
            outcome.error = error
            self._offer(worker)
        except BaseException:
            outcome.error = UnavailableError(self.next_start)
            raise
        finally:
            outcome.done.set()

    async def _acquired(self, only: Worker | None, seconds: float) -> Worker:
        waiter = _Waiter(only)
        self._waiters.append(waiter)
        self._hand_out()
        end = anyio.current_time() + seconds
        try:
            while waiter.worker is None:
                with anyio.move_on_after(min(self.times.hope, end - anyio.current_time())):
                    await waiter.given.wait()
                self._check(waiter, end)
        except BaseException:
            if waiter.worker is not None:
                self._offer(waiter.worker)
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return waiter.worker

    def _check(self, waiter: _Waiter, end: float) -> None:
        """Raise an error where there is no more hope of a worker."""
        if waiter.worker is not None:
            return
        if waiter.only is not None and not waiter.only.is_alive:
            raise WorkerEndedError
        if self._tasks is None or self.is_failing:
            raise UnavailableError(self.next_start)
        if anyio.current_time() >= end:
            raise OverdueError if self._workers else UnavailableError(self.next_start)

    def _offer(self, worker: Worker) -> None:
        if worker in self._workers and worker.is_usable:
            self._idle.append(worker)
            self._hand_out()

    def _hand_out(self) -> None:
        for waiter in list(self._waiters):
            fitting = (each for each in self._idle if waiter.only in (None, each))
            worker = next(fitting, None)
            if worker is not None:
                self._idle.remove(worker)
                self._waiters.remove(waiter)
                waiter.worker = worker
                waiter.given.set()

    @property
    def next_start(self) -> float:
        """In how many seconds a worker may run again, where none does."""
        soonest = min(self._failing.values(), default=0) - anyio.current_time()
        return max(1.0, round(soonest, 1))

    async def _keep(self, number: int) -> None:
        """Keep one worker running, and start the next when it has ended."""
        failures = 0
        while True:
            failures = 0 if await self._live(number, failures) else failures + 1
            self.restarts += 1
            # At once at first; then a second, two, four.
            pause = min(2.0 ** (failures - 2), self.times.most_between_starts)
            if failures > 1:
                self._failing[number] = anyio.current_time() + pause
                await anyio.sleep(pause)

    async def _live(self, number: int, failures: int) -> bool:
        """Start a worker and wait for its end. Return whether it has been of use."""
        worker: Worker | None = None
        try:
            # A start that is cancelled halfway leaves a process and its pipes behind.
            with anyio.CancelScope(shield=True):
                worker = await self._start()
        except OSError as error:
            self._tell(None, f"it cannot be started: {error}")
        if worker is None:
            return False
        ready = 0
        try:
            if self._tasks is not None:
                self._tasks.start_soon(worker.listen)
            if await self._loaded(worker, failures):
                ready = worker.answered
                self._failing.pop(number, None)
                self._workers.append(worker)
                self._offer(worker)
            self._tell(worker, await worker.wait())
        finally:
            for each in (self._workers, self._idle):
                if worker in each:
                    each.remove(worker)
            await worker.close()
        return worker.answered > ready > 0

    async def _loaded(self, worker: Worker, failures: int) -> bool:
        try:
            with anyio.fail_after(self.times.start):
                await worker.run(tasks.open_built_in)
                # After a failure it may be a dataset that it cannot open.
                for files in () if failures else self._warm:
                    with suppress(DatasetError):  # a search that needs it tells
                        await worker.run(tasks.inspect, files)
        except TimeoutError:
            worker.end(f"it was not ready within {self.times.start:g} s")
            return False
        except WorkerEndedError:
            return False
        except Exception:  # noqa: BLE001  - a search that needs it tells
            self._log.debug("worker not warmed", exc_info=True)
        return True

    def _tell(self, worker: Worker | None, cause: str) -> None:
        facts = {"pid": worker and worker.pid, "cause": cause, "restarts": self.restarts + 1}
        self._log.warning("worker ended", extra=facts)
