"""Workers end for many causes; their calls are answered, and new workers start."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from support.waiting import WAIT, until

from standards_mcp_knowledge.manifests import Files, stamps_of
from standards_mcp_knowledge.settings import KnowledgeSettings
from standards_mcp_knowledge.workers import pool as module
from standards_mcp_knowledge.workers import tasks
from standards_mcp_knowledge.workers.pool import OverdueError, Pool, UnavailableError
from standards_mcp_knowledge.workers.process import Worker, WorkerEndedError, start_worker

pytestmark = pytest.mark.anyio
LOG = logging.getLogger("standards_mcp.plugins.knowledge")
OPAQUE = "class Opaque(Exception): pass\nraise Opaque('text')"
MakeDataset = Callable[..., Path]


@asynccontextmanager
async def pool(
    size: int = 1, start: Any = start_worker, failing_wait: float = 2, **settings: Any
) -> AsyncGenerator[Pool]:
    made = Pool(KnowledgeSettings(workers=size, **settings), LOG, start)
    made.failing_wait = failing_wait
    made._start_requested.set()
    async with anyio.create_task_group() as group:
        group.start_soon(made.serve)
        await anyio.lowlevel.checkpoint()
        yield made
        group.cancel_scope.cancel()


async def call(workers: Pool, function: Callable[..., Any], *arguments: Any) -> Any:
    return await workers.run(tasks.call, function, *arguments)


def causes(records: Sequence[logging.LogRecord]) -> list[str]:
    return [vars(each)["cause"] for each in records if each.message == "worker ended"]


async def test_a_worker_stays_and_answers_or_raises_as_the_function_does(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO, LOG.name)
    async with pool() as workers:
        pid = await call(workers, os.getpid)
        assert pid != os.getpid()
        with pytest.raises(ZeroDivisionError) as raised:
            await call(workers, divmod, 1, 0)
        assert "Traceback" in raised.value.__notes__[0]
        # An error that cannot be pickled comes as its text.
        with pytest.raises(RuntimeError, match="Opaque: text"):
            await call(workers, exec, OPAQUE)
        rows = await workers.run(tasks.encode, ["a", "b"], "all-MiniLM-L6-v2")
        assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
        # Its output goes to the log, not into its answers.
        await call(workers, print, "hello\n\nworld")
        await call(workers, os.write, 1, b"natively\n")
        assert await call(workers, os.getpid) == pid

        def said() -> list[str]:
            return [vars(each).get("text", "") for each in caplog.records]

        await until(lambda: "natively" in said(), "the output of a worker is in the log")
        assert [text for text in said() if text] == ["hello", "world", "natively"]
        assert workers.state == "ready"
    assert workers.state == "stopped"


async def test_a_deadline_ends_the_worker_and_the_call_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
):
    async with pool(2, timeout=1.5) as workers:
        await until(lambda: workers.state == "ready", "both workers run")
        began = anyio.current_time()
        outcomes: list[str] = []

        async def sleep() -> None:
            with pytest.raises(OverdueError):
                await call(workers, time.sleep, 60)
            outcomes.append("overdue")

        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            await anyio.sleep(0.1)
            for _ in range(5):
                await call(workers, os.getpid)
            outcomes.append("answered")
        assert outcomes == ["answered", "overdue"]
        assert anyio.current_time() - began < 20
        await until(lambda: workers.restarts == 1, "the next worker starts")
    assert causes(caplog.records) == ["it exceeded its deadline"]


async def test_a_call_whose_worker_crashes_is_tried_again(caplog: pytest.LogCaptureFixture):
    async with pool(2) as workers:
        await until(lambda: workers.state == "ready", "both workers run")
        with pytest.raises(UnavailableError) as raised:
            await call(workers, os.abort)
        assert raised.value.seconds >= 1
        assert await call(workers, os.getpid)
        await until(lambda: workers.state == "ready", "both workers run again")
    assert sorted(causes(caplog.records)) == ["signal SIGABRT", "signal SIGABRT"]


async def test_a_call_waits_for_the_next_worker_if_all_have_been_killed():
    async with pool(2) as workers:
        await until(lambda: workers.state == "ready", "both workers run")
        for _ in range(2):
            pids = await both_pids(workers)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            assert await call(workers, os.getpid) not in pids
            await until(lambda: workers.state == "ready", "both workers run again")


async def both_pids(workers: Pool) -> set[int]:
    pids: set[int] = set()

    async def ask() -> None:
        pids.add(await call(workers, os.getpid))

    while len(pids) < 2:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
    return pids


async def test_workers_start_with_the_first_call():
    made = Pool(KnowledgeSettings(workers=1), LOG, never_started)
    made.failing_wait = 0.2
    async with anyio.create_task_group() as group:
        group.start_soon(made.serve)
        await anyio.lowlevel.checkpoint()
        assert (made.state, made.processes, made.restarts) == ("stopped", 0, 0)
        with pytest.raises(UnavailableError):
            await call(made, os.getpid)
        assert made.restarts
        group.cancel_scope.cancel()


async def test_who_has_time_waits_longer_for_a_worker_that_is_slow_to_start():
    async def start(log: logging.Logger) -> Worker:
        await anyio.sleep(1)
        return await start_worker(log)

    async with pool(start=start, timeout=0.2, failing_wait=0.1) as workers:
        with pytest.raises(UnavailableError):
            await call(workers, os.getpid)
        assert await workers.run(tasks.call, os.getpid, seconds=WAIT)


async def never_started(_: logging.Logger) -> Worker:
    raise OSError("no processes left")


class EndingWorker:
    """A worker that ends whenever it is to run a call."""

    pid = 0
    is_usable = True

    async def run(self, function: Callable[..., Any], *_: Any) -> None:
        if function is not tasks.begin:
            self.end("")
            raise WorkerEndedError(has_begun=False)

    async def wait(self) -> str:
        while self.is_usable:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        return "it ended"

    def end(self, _: str) -> None:
        self.is_usable = False

    async def close(self) -> None:
        self.end("")

    async def log_output(self) -> None:
        """Have no output."""


async def start_ending(_: logging.Logger) -> Any:
    return EndingWorker()


async def test_a_call_whose_workers_end_before_it_begins_is_not_tried_for_ever():
    async with pool(start=start_ending, timeout=0.3) as workers:
        with anyio.fail_after(WAIT), pytest.raises(UnavailableError):
            await call(workers, os.getpid)
        assert workers.restarts > 1


async def test_a_worker_that_takes_too_much_memory_ends(caplog: pytest.LogCaptureFixture):
    async with pool(worker_memory=900_000_000) as workers:
        assert await call(workers, os.getpid)
        with pytest.raises(UnavailableError):
            await call(workers, bytearray, 10**9)
        assert await call(workers, os.getpid)
    assert set(causes(caplog.records)) == {"it needed more memory than worker_memory"}


async def test_a_caller_that_gives_up_leaves_no_answer_for_the_next():
    async with pool() as workers:
        await call(workers, os.getpid)
        with anyio.move_on_after(0.2):
            await call(workers, time.sleep, 1)
        assert await call(workers, int, "7") == 7
        # One that waits for the worker gives its place away.
        async with anyio.create_task_group() as group:
            group.start_soon(call, workers, time.sleep, 0.5)
            await anyio.sleep(0.1)
            with anyio.move_on_after(0.1):
                await call(workers, os.getpid)
        assert await call(workers, int, "8") == 8


async def test_calls_wait_for_a_busy_worker_but_not_for_ever():
    async with pool(timeout=1, failing_wait=0.2) as workers:
        await until(lambda: workers.state == "ready", "the worker runs")
        with anyio.fail_after(WAIT):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(call, workers, time.sleep, 0.2)
        async with anyio.create_task_group() as group:
            group.start_soon(workers.run, tasks.call, time.sleep, 0.9)
            await anyio.sleep(0.05)
            assert await call(workers, int, "7") == 7


async def test_where_no_worker_can_start_calls_are_refused_soon_and_starts_get_rare(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_MAX_RESTART_PAUSE", 0.4)
    starts: list[float] = []

    async def start(_: logging.Logger) -> Worker:
        starts.append(anyio.current_time())
        raise OSError("no processes left")

    async with pool(2, start=start, failing_wait=0.2) as workers:
        with pytest.raises(UnavailableError):
            await call(workers, os.getpid)
        assert workers.is_failing
        assert workers.state == "restarting"
        await until(lambda: len(starts) >= 6, "it tries again")
        # The second try is at once, and those after it wait.
        assert starts[2] - starts[0] < 0.2
        assert starts[5] - starts[3] > 0.2


async def test_a_dataset_that_ends_workers_does_not_keep_them_from_starting(
    make_dataset: MakeDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = make_dataset()
    good = files_of(folder)
    async with pool() as workers:
        await call(workers, os.getpid)
        # Reading a pipe never ends.
        os.mkfifo(tmp_path / "pipe")
        bad = Files(tmp_path / "pipe", good.metadata, good.stamps)
        workers.start_timeout = 4
        workers.warm([bad])
        await until(lambda: workers.restarts >= 1, "the worker is replaced")
        assert await call(workers, os.getpid)
    assert causes(caplog.records) == ["it exceeded its deadline"]


def files_of(folder: Path) -> Files:
    index, metadata = folder / "docs.index", folder / "metadata.json"
    return Files(index, metadata, stamps_of(index, metadata))


async def test_datasets_are_opened_before_they_are_searched_and_again_after_a_crash(
    make_dataset: MakeDataset,
):
    folder = make_dataset()
    files, gone = files_of(folder), files_of(make_dataset("gone"))
    shutil.rmtree(gone.index.parent)

    def is_open(pid: int) -> bool:
        return "guide/docs.index" in Path(f"/proc/{pid}/maps").read_text()

    async with pool() as workers:
        pid = await call(workers, os.getpid)
        assert not is_open(pid)
        workers.warm([gone, files])
        await until(lambda: is_open(pid))
        os.kill(pid, signal.SIGKILL)
        await until(lambda: workers.restarts and workers.processes)
        after = await call(workers, os.getpid)
        assert after != pid
        await until(lambda: is_open(after))
