"""Keep worker processes running, and run each call in one of them, with a deadline.

Other pools do not fit. Workers of `anyio.to_process` are shared by all plugins, end when idle and
have no memory limit. A `ProcessPoolExecutor` breaks as a whole if one process ends, cannot end one
overdue call, and lets its processes write to the stdout of the server.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import anyio

from standards_mcp_knowledge.manifests import Files
from standards_mcp_knowledge.settings import KnowledgeSettings

from . import tasks
from .process import Worker, WorkerEndedError, start_worker

T = TypeVar("T")
Start: TypeAlias = Callable[[logging.Logger], Awaitable[Worker]]
State: TypeAlias = Literal["starting", "ready", "restarting", "stopped"]
_ATTEMPTS: Final = 2
_MAX_RESTART_PAUSE: Final = 30.0
_EXIT_WAIT: Final = 2.0
"""Seconds that a worker has to end by itself after an incomplete answer."""


class UnavailableError(OSError):
    """No worker is available, or two workers have ended during the call.

    Attributes:
        seconds: Seconds until a worker may be available again.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__("the worker process ended; the log has the cause")
        self.seconds = seconds


class OverdueError(TimeoutError):
    """A worker did not answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


@dataclass(eq=False, slots=True)
class _Job:
    """A call of a function in a worker, and its result or error.

    Attributes:
        attempts_left: Number of workers that may still start the call; 0 if the caller gave up.
        wait_until: The time until which the job may wait for a worker.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float
    attempts_left: int
    wait_until: float = 0
    value: Any = None
    error: Exception | None = None
    finished: anyio.Event = field(default_factory=anyio.Event)


# Workers of `anyio.to_process` are not faster: both kinds take 1.1 s to start with FAISS and an
# encoder, and 0.1 to 0.2 ms for a call.
class Pool:
    """Workers that start with the first call, and stay while `serve` runs.

    Args:
        start: Starts one worker.

    Attributes:
        size: Number of workers.
        restarts: Number of replaced workers.
        start_timeout: Deadline for a new worker, and for one that opens a dataset, in seconds.
        failing_wait: Wait of a call for a worker while none can be started, in seconds.
    """

    start_timeout = 60.0
    failing_wait = 2.0

    def __init__(
        self, settings: KnowledgeSettings, log: logging.Logger, start: Start = start_worker
    ) -> None:
        self._settings = settings
        self.size = settings.workers
        self._log = log
        self._start_worker = start
        self.restarts = 0
        self._is_serving = False
        self._start_requested = anyio.Event()
        self._jobs_changed = anyio.Event()
        self._jobs: deque[_Job] = deque()
        self._workers: list[Worker] = []
        self._next_starts: dict[int, float] = {}
        self._warm_datasets: tuple[Files, ...] = ()

    @property
    def processes(self) -> int:
        """Number of running workers."""
        return len(self._workers)

    @property
    def is_started(self) -> bool:
        """True after the first call."""
        return self._start_requested.is_set()

    @property
    def state(self) -> State:
        """The state of the workers: ready if all of them run."""
        if not self._is_serving or not self.is_started:
            return "stopped"
        if len(self._workers) == self.size:
            return "ready"
        return "restarting" if self.restarts or self._next_starts else "starting"

    @property
    def is_failing(self) -> bool:
        """True if no worker can be started."""
        return len(self._next_starts) == self.size

    @property
    def next_start(self) -> float:
        """Seconds until a worker may be available again."""
        soonest = min(self._next_starts.values(), default=0) - anyio.current_time()
        return max(1.0, round(soonest, 1))

    async def serve(self) -> None:
        """Wait for the first call, then keep all workers running until cancelled."""
        self._is_serving = True
        try:
            await self._start_requested.wait()
            async with anyio.create_task_group() as group:
                for slot in range(self.size):
                    group.start_soon(self._keep_running, slot)
        finally:
            self._is_serving = False

    async def run(
        self, function: Callable[..., T], *arguments: Any, seconds: float | None = None
    ) -> T:
        """Run a function of `tasks` in a worker, and again in another one if the first ends.

        A worker that ends before it starts the call does not count as an attempt. If all workers
        have ended, the call waits for the next one.

        Args:
            seconds: Deadline for a free worker and for its answer, in place of `timeout`.

        Raises:
            OverdueError: No worker became free in time, or the worker took too long and was killed.
            UnavailableError: No worker is available, or two workers have ended.
            Exception: The error of the function.
        """
        self._start_requested.set()
        job = _Job(function, arguments, seconds or self._settings.timeout, _ATTEMPTS)
        job.wait_until = anyio.current_time() + job.seconds
        self._jobs.append(job)
        self._wake()
        try:
            while not job.finished.is_set():
                with anyio.move_on_after(min(self.failing_wait, job.seconds)):
                    await job.finished.wait()
                if job in self._jobs:
                    self._check_wait(job)
        finally:
            job.attempts_left = 0
            if job in self._jobs:
                self._jobs.remove(job)
        if job.error is not None:
            raise job.error
        return cast("T", job.value)

    def warm(self, datasets: Sequence[Files]) -> None:
        """Open these datasets in every worker, now and after a restart, and close all others."""
        self._warm_datasets = tuple(datasets)
        self._wake()

    def _warming_jobs(self) -> deque[_Job]:
        """Return jobs that open the datasets in one worker; searches can run between them."""
        seconds = self.start_timeout
        jobs = [_Job(tasks.check, (files,), seconds, 0) for files in self._warm_datasets]
        return deque([_Job(tasks.close_others, (self._warm_datasets,), seconds, 0), *jobs])

    def _wake(self) -> None:
        self._jobs_changed.set()
        self._jobs_changed = anyio.Event()

    def _check_wait(self, job: _Job) -> None:
        """Raise an error if a waiting job cannot get a worker in time."""
        is_late = anyio.current_time() >= job.wait_until
        if is_late and self._workers:
            raise OverdueError(job.seconds)
        if is_late or self.is_failing or not self._is_serving:
            raise UnavailableError(self.next_start)

    async def _keep_running(self, slot: int) -> None:
        """Keep a worker running in one slot: start a new one whenever it has ended."""
        failures = 0
        while True:
            failures = 0 if await self._run_worker(slot, failures) else failures + 1
            self.restarts += 1
            # The first restart is immediate; later ones wait 1, 2, 4 s and so on.
            pause = min(2.0 ** (failures - 2), _MAX_RESTART_PAUSE)
            if failures > 1:
                self._next_starts[slot] = anyio.current_time() + pause
                await anyio.sleep(pause)

    async def _run_worker(self, slot: int, failures: int) -> bool:
        """Run a worker until it ends; return True if it answered a call."""
        worker: Worker | None = None
        # A start that is cancelled halfway would leave a process and its pipes behind.
        with anyio.CancelScope(shield=True):
            try:
                worker = await self._start_worker(self._log)
            except OSError as error:
                self._log_end(None, f"it cannot be started: {error}")
        if worker is None:
            return False
        has_answered = False
        async with anyio.create_task_group() as group:
            group.start_soon(worker.log_output)
            try:
                if await self._begin(worker):
                    self._next_starts.pop(slot, None)
                    self._workers.append(worker)
                    group.start_soon(self._wake_at_end, worker)
                    # After a failure nothing is warmed: a dataset may be the cause.
                    has_answered = await self._run_jobs(worker, is_warmed=failures > 0)
                self._log_end(worker, await worker.wait())
            finally:
                if worker in self._workers:
                    self._workers.remove(worker)
                await worker.close()
        return has_answered

    async def _begin(self, worker: Worker) -> bool:
        try:
            with anyio.fail_after(self.start_timeout):
                await worker.run(tasks.begin, self._settings)
        except TimeoutError:
            worker.end(f"it was not ready within {self.start_timeout:g} s")
            return False
        except WorkerEndedError:
            return False
        except Exception:  # noqa: BLE001  - a search reports it
            self._log.debug("worker not warmed", exc_info=True)
        return True

    async def _wake_at_end(self, worker: Worker) -> None:
        await worker.wait()
        self._wake()

    async def _run_jobs(self, worker: Worker, *, is_warmed: bool) -> bool:
        """Run jobs in a worker until it ends; return True if it has answered a call."""
        has_answered = False
        warmed = self._warm_datasets if is_warmed else None
        warming: deque[_Job] = deque()
        while worker.is_usable:
            if warmed is not self._warm_datasets:
                warmed, warming = self._warm_datasets, self._warming_jobs()
            if self._jobs:
                has_answered |= await self._run_job(worker, self._jobs.popleft())
            elif warming:
                await self._run_job(worker, warming.popleft())
            else:
                await self._jobs_changed.wait()
        return has_answered

    async def _run_job(self, worker: Worker, job: _Job) -> bool:
        """Run a job, even if its caller gives up meanwhile; return True if the worker answered."""
        scope = anyio.move_on_after(job.seconds)
        try:
            with scope:
                job.value = await worker.run(job.function, *job.arguments)
            if scope.cancelled_caught:
                worker.end("it exceeded its deadline")
                job.error = OverdueError(job.seconds)
        except WorkerEndedError as error:
            self._retry(job, has_begun=error.has_begun)
            # The worker's own exit status shows the cause; a kill would hide it.
            with anyio.move_on_after(_EXIT_WAIT):
                await worker.wait()
            worker.end("it broke off an answer")
            return False
        except Exception as error:  # noqa: BLE001  - the caller raises it
            job.error = error
        except BaseException:
            job.error = UnavailableError(self.next_start)
            job.finished.set()
            raise
        job.finished.set()
        return not scope.cancelled_caught

    def _retry(self, job: _Job, *, has_begun: bool) -> None:
        now = anyio.current_time()
        if has_begun:
            job.attempts_left -= 1
            job.wait_until = now + job.seconds
        # Workers that end before they start the call cost no attempt, but time.
        if job.attempts_left > 0 and now < job.wait_until:
            self._jobs.appendleft(job)
            self._wake()
        else:
            job.error = UnavailableError(self.next_start)
            job.finished.set()

    def _log_end(self, worker: Worker | None, cause: str) -> None:
        fields = {"pid": worker and worker.pid, "cause": cause, "restarts": self.restarts + 1}
        self._log.warning("worker ended", extra=fields)
