"""Detect side effects of code on its process, and code that blocks the event loop.

For the latter, a thread schedules a callback in the loop, again and again. While the callback is
overdue, the thread samples the loop thread's stack. It counts only samples inside the plugin's
code, so a slow machine is not reported as a blocking plugin. Imports do not count, since they
happen once.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import io
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Generator
from contextlib import asynccontextmanager, contextmanager, redirect_stdout, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

_GRACE_SECONDS: Final = 0.5
_MIN_SAMPLES: Final = 10
_HANDLE_RUN_CODE: Final = asyncio.events.Handle._run.__code__  # pyright: ignore[reportPrivateUsage] # noqa: SLF001

# The event loop owns these threads, and keeps them for the next call.
_POOL_THREAD_PREFIXES: Final = ("asyncio_", "AnyIO worker thread")
_PROCESS_POOL_TASK: Final = "_shutdown_process_pool_on_exit"
_WAITPID_THREAD_PREFIXES: Final = ("asyncio-waitpid", "waitpid-")

# pytest sets the first; the embedded catalog sets the second when its model loads.
_IGNORED_VARIABLES: Final = frozenset({"PYTEST_CURRENT_TEST", "ORT_DISABLE_TELEMETRY"})


class SideEffects:
    """Collects a plugin's side effects on the shared process.

    These are output on stdout, changes of the environment or of the working directory, and leftover
    threads and tasks.

    Attributes:
        faults: Messages in the order of detection (a dict used as an ordered set).
    """

    def __init__(self) -> None:
        self.faults: dict[str, None] = {}
        self._environment = _variables()
        self._folder = Path.cwd()

    def add(self, fault: str) -> None:
        """Note a fault."""
        self.faults[fault] = None

    @contextmanager
    def phase(self, subject: str) -> Generator[None]:
        """Watch the body of the ``with`` block, and report its side effects.

        Output on stdout is captured, and changes of the environment or the working directory are
        undone.

        Args:
            subject: The name of this code in messages.
        """
        texts: list[str] = []
        try:
            with _capture_stdout() as texts:
                yield
        finally:
            if text := "".join(texts):
                shown = repr(text[:60])
                self.add(f"{subject} writes to stdout ({shown}); log it or write to sys.stderr")
            self._report_and_restore(subject)

    @asynccontextmanager
    async def detect_leftovers(self) -> AsyncGenerator[None]:
        """Report the threads and tasks that the body starts and leaves running."""
        threads, tasks = set(threading.enumerate()), asyncio.all_tasks()
        yield
        deadline = time.monotonic() + _GRACE_SECONDS
        while (left := _newly_running(threads, tasks)) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        for name in left:
            self.add(f"its lifespan leaves {name} running; end it when the lifespan ends")

    def restore(self) -> None:
        """Put back the environment and the working directory."""
        for name in _variables().keys() - self._environment.keys():
            del os.environ[name]
        os.environ.update(self._environment)
        os.chdir(self._folder)

    def _report_and_restore(self, subject: str) -> None:
        pairs = self._environment.items() ^ _variables().items()
        if names := sorted({name for name, _ in pairs}):
            self.add(
                f"{subject} changes the environment variables {', '.join(names)}; read the values "
                "from the plugin's settings instead"
            )
        if Path.cwd() != self._folder:
            self.add(f"{subject} changes the working directory; use absolute paths")
        self.restore()


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _IGNORED_VARIABLES}


def _newly_running(
    known_threads: Collection[threading.Thread], known_tasks: Collection[asyncio.Task[Any]]
) -> list[str]:
    """Return the names of new threads and tasks."""
    new_tasks = asyncio.all_tasks().difference(known_tasks)
    names = {getattr(task.get_coro(), "__qualname__", task.get_name()) for task in new_tasks}
    # anyio keeps the workers of `to_process` until the event loop ends.
    waitpid = _WAITPID_THREAD_PREFIXES if _PROCESS_POOL_TASK in names else ()
    ignored = (*_POOL_THREAD_PREFIXES, *waitpid)
    new_threads = [
        f"thread {thread.name!r}"
        for thread in threading.enumerate()
        if thread not in known_threads and not thread.name.startswith(ignored)
    ]
    return [*new_threads, *(f"task {name!r}" for name in sorted(names - {_PROCESS_POOL_TASK}))]


@contextmanager
def _capture_stdout() -> Generator[list[str]]:
    """Capture `sys.stdout`, and descriptor 1, the stdout of C code and child processes.

    The list is empty until the block ends; then it contains the captured text.
    """
    texts: list[str] = []
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        saved = os.dup(1)
        os.dup2(file.fileno(), 1)
        stream = io.TextIOWrapper(os.fdopen(os.dup(1), "wb", 0), "utf-8", write_through=True)
        try:
            with redirect_stdout(stream):
                yield texts
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            with suppress(OSError, ValueError):
                stream.close()
            file.seek(0)
            texts.append(file.read().decode(errors="replace").strip())


class LoopMonitor:
    """Monitors the running event loop of the thread that creates this object.

    Records where the plugin blocks the loop.

    Args:
        package: The top-level package of the plugin.
        seconds: Time for which the plugin may block.

    Attributes:
        locations: The places that blocked for longer, such as ``plugin.py:12 (open)``.
    """

    def __init__(self, package: str, seconds: float) -> None:
        self.locations: dict[str, None] = {}
        self._package = package
        self._sample_seconds = seconds / _MIN_SAMPLES
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._ended = threading.Event()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Monitor the loop during the body."""
        thread = threading.Thread(target=self._watch, name="loop monitor", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._sample_seconds):
            alive = threading.Event()
            self._loop.call_soon_threadsafe(alive.set)
            seen: Counter[str] = Counter()
            while not alive.wait(self._sample_seconds) and not self._ended.is_set():
                # C code that blocks with the GIL held is not found, because this thread does not
                # run then either.
                seen.update(_location(sys._current_frames().get(self._thread_id), self._package))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if seen.total() >= _MIN_SAMPLES:
                self.locations[seen.most_common(1)[0][0]] = None


def _location(frame: FrameType | None, package: str) -> list[str]:
    """Return ``["file.py:12 (function)"]`` for the innermost frame of *package*.

    Only frames of the callback that the loop is running count. Return [] if there is none, or
    during an import.
    """
    location: list[str] = []
    while frame is not None and frame.f_code is not _HANDLE_RUN_CODE:
        module = str(frame.f_globals.get("__name__", ""))
        if module == "importlib._bootstrap":
            return []
        if not location and module.partition(".")[0] == package:
            code = frame.f_code
            location = [f"{Path(code.co_filename).name}:{frame.f_lineno} ({code.co_name})"]
        frame = frame.f_back
    return location if frame is not None else []
