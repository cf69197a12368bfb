"""Keep worker processes running, and run each call in one of them, with a deadline.

Workers of `anyio.to_process` are shared by all plugins, end when idle and have no limit of memory;
a `ProcessPoolExecutor` breaks as a whole if one process ends, and cannot end one overdue call.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from standards_mcp_knowledge.manifests import DatasetError, Files

from . import tasks
from .worker import Worker, WorkerEndedError, WorkerGoneError

T = TypeVar("T")
Start: TypeAlias = Callable[[], Awaitable[Worker]]
State: TypeAlias = Literal["starting", "ready", "restarting", "stopped"]
_ATTEMPTS: Final = 2
_LAST_WORDS: Final = 2.0
"""Seconds that a worker has to end by itself once it has broken off an answer."""


class UnavailableError(Exception):
    """No worker is available.

    Attributes:
        seconds: Seconds until one may be available again.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class OverdueError(Exception):
    """A worker did not answer in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Deadlines and pauses of a pool, in seconds.

    Attributes:
        attempt: For a worker to become free, and for its answer.
        start: For a worker to load what it needs.
        hope: For a worker, while every start fails.
        most_between_starts: Longest pause between failing starts; pauses double up to it.
    """

    attempt: float = 10
    start: float = 60
    hope: float = 2
    most_between_starts: float = 30


@dataclass(eq=False, slots=True)
class _Waiter:
    """A call that waits for any worker, or for the worker *only*."""

    only: Worker | None = None
    worker: Worker | None = None
    assigned: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True)
class _Outcome:
    """The result or error of one attempt."""

    value: Any = None
    error: Exception | None = None
    done: anyio.Event = field(default_factory=anyio.Event)


# Workers of `anyio.to_process` are not faster: both kinds take 1.1 s to start with FAISS and an
# encoder, and 0.1 to 0.2 ms for a call.
class Pool:
    """Workers that start with the first call, and stay while `serve` runs.

    Args:
        start: Starts one worker.

    Attributes:
        size: Number of workers.
        restarts: Number of replaced workers.
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
        """Number of running workers."""
        return len(self._workers)

    @property
    def is_started(self) -> bool:
        """True after `start`."""
        return self._wanted.is_set()

    @property
    def state(self) -> State:
        """The state of the workers: ready if all run."""
        if self._tasks is None or not self.is_started:
            return "stopped"
        if len(self._workers) == self.size:
            return "ready"
        return "restarting" if self.restarts or self._failing else "starting"

    @property
    def is_failing(self) -> bool:
        """True if every start fails."""
        return len(self._failing) == self.size

    def start(self) -> None:
        """Start the workers before the first call."""
        self._wanted.set()

    async def serve(self) -> None:
        """Keep all workers running after `start`, until this is cancelled."""
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
        """Run a function of `tasks` in a worker, and again in another one if the first ends.

        A worker that ends before it begins with the call does not count as an attempt. If all have
        ended, the call waits for the next one.

        Args:
            seconds: Deadline for a free worker and for its answer, in place of `Times.attempt`.

        Raises:
            OverdueError: The worker did not answer in time, and was ended.
            UnavailableError: No worker is available, or two have ended.
            Exception: The error of the function.
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
        """Open these datasets in every worker, now and after a restart."""
        self._warm = tuple(datasets)
        if self._tasks is not None:
            for worker in self._workers:
                self._tasks.start_soon(self._warm_one, worker, self._warm)

    async def _warm_one(self, worker: Worker, datasets: Sequence[Files]) -> None:
        # Separate calls, so that searches can run between them.
        jobs: list[tuple[Callable[..., object], object]] = [(tasks.close_others, datasets)]
        jobs += [(tasks.inspect, files) for files in datasets]
        for function, argument in jobs:
            try:
                await self._attempt(worker, self.times.start, function, argument)
            except (OverdueError, UnavailableError, WorkerEndedError):
                return
            except Exception:  # noqa: BLE001  - a search reports it
                self._log.debug("worker not warmed", exc_info=True)

    async def _attempt(
        self, only: Worker | None, seconds: float, function: Callable[..., T], *arguments: Any
    ) -> T:
        outcome = _Outcome()
        worker = await self._acquired(only, seconds)
        if self._tasks is None:
            raise UnavailableError(self.next_start)
        # The exchange outlives a cancelled caller, or the next call would get its answer.
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
            # Its exit status has the cause, which a kill would hide.
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
                    await waiter.assigned.wait()
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
        """Raise an error if the waiter cannot get a worker in time."""
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
            fitting = (worker for worker in self._idle if waiter.only in (None, worker))
            worker = next(fitting, None)
            if worker is not None:
                self._idle.remove(worker)
                self._waiters.remove(waiter)
                waiter.worker = worker
                waiter.assigned.set()

    @property
    def next_start(self) -> float:
        """Seconds until a worker may be available again."""
        soonest = min(self._failing.values(), default=0) - anyio.current_time()
        return max(1.0, round(soonest, 1))

    async def _keep(self, number: int) -> None:
        """Keep one worker running, and start the next when it has ended."""
        failures = 0
        while True:
            failures = 0 if await self._live(number, failures) else failures + 1
            self.restarts += 1
            # The first restart is immediate; later ones wait 1, 2, 4 s and so on.
            pause = min(2.0 ** (failures - 2), self.times.most_between_starts)
            if failures > 1:
                self._failing[number] = anyio.current_time() + pause
                await anyio.sleep(pause)

    async def _live(self, number: int, failures: int) -> bool:
        """Start a worker and wait for its end; return True if it answered a call."""
        worker: Worker | None = None
        try:
            # A start that is cancelled halfway would leave a process and its pipes behind.
            with anyio.CancelScope(shield=True):
                worker = await self._start()
        except OSError as error:
            self._log_end(None, f"it cannot be started: {error}")
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
            self._log_end(worker, await worker.wait())
        finally:
            for workers in (self._workers, self._idle):
                if worker in workers:
                    workers.remove(worker)
            await worker.close()
        return worker.answered > ready > 0

    async def _loaded(self, worker: Worker, failures: int) -> bool:
        try:
            with anyio.fail_after(self.times.start):
                await worker.run(tasks.open_built_in)
                # After a failure nothing is warmed: a dataset may be the cause.
                for files in () if failures else self._warm:
                    with suppress(DatasetError):  # a search reports it
                        await worker.run(tasks.inspect, files)
        except TimeoutError:
            worker.end(f"it was not ready within {self.times.start:g} s")
            return False
        except WorkerEndedError:
            return False
        except Exception:  # noqa: BLE001  - a search reports it
            self._log.debug("worker not warmed", exc_info=True)
        return True

    def _log_end(self, worker: Worker | None, cause: str) -> None:
        fields = {"pid": worker and worker.pid, "cause": cause, "restarts": self.restarts + 1}
        self._log.warning("worker ended", extra=fields)
