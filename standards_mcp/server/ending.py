"""Ends the process where a plugin would keep it from ending."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from os import _exit
from time import monotonic, sleep
from types import AsyncGeneratorType, FrameType
from typing import Any, Final

log = logging.getLogger("standards_mcp")

_LAST_SECONDS: Final = 2.0
"""For the event loop and the interpreter, once all plugins have had their time to stop."""
_LOG_SECONDS: Final = 1.0


class Ending:
    """Counts the time from the moment in which the process should end.

    It has a thread of its own, since a plugin may hold the event loop, be deaf to being cancelled,
    or have patched what a deadline in the event loop needs.

    Args:
        seconds: How long plugins have to stop, all together.
        plugins: Returns the names of the loaded plugins by the packages of their code.
    """

    def __init__(self, seconds: float, plugins: Callable[[], Mapping[str, str]]) -> None:
        self._seconds = seconds
        self._plugins = plugins
        self._loop = asyncio.get_running_loop()
        self._deadline = float("inf")
        self._changed = threading.Lock()
        self._changed.acquire()
        # Begun now, and not as a `Thread`: plugins may have patched that later, or trace it.
        start_new_thread(self._watch, ())

    def begin(self, drain_seconds: float = 0) -> None:
        """End the process within the time that plugins have to stop.

        Args:
            drain_seconds: How long requests in flight may finish before.
        """
        self._end_within(drain_seconds + self._seconds + _LAST_SECONDS)

    def finish(self) -> None:
        """End the process soon: all plugins have stopped, or had their time."""
        self._end_within(_LAST_SECONDS)

    def _end_within(self, seconds: float) -> None:
        self._deadline = min(self._deadline, monotonic() + seconds)
        with suppress(RuntimeError):  # it has not been taken up since the last time
            self._changed.release()

    def _watch(self) -> None:
        while (left := self._deadline - monotonic()) > 0:
            self._changed.acquire(timeout=min(left, threading.TIMEOUT_MAX))
        start_new_thread(_end_soon, ())
        self._tell()
        _exit(1)

    def _tell(self) -> None:
        modules = list(self._modules_at_work())
        names = self._plugins()
        packages = (module.partition(".")[0] for module in modules)
        held_by = sorted({names[package] for package in packages if package in names})
        fields: dict[str, Any] = {"plugins": held_by} if held_by else {"modules": modules[:10]}
        log.error("the process is ended while a plugin still runs", extra=fields)
        logging.shutdown()

    def _modules_at_work(self) -> Iterator[str]:
        """Yield the modules of what the main thread runs, and of what tasks wait in."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        while frame:
            yield _module(frame)
            frame = frame.f_back
        with suppress(RuntimeError):  # tasks come and go meanwhile
            for task in asyncio.all_tasks(self._loop):
                awaited: Any = task.get_coro()
                while frame := getattr(awaited, "cr_frame", None):
                    yield _module(frame)
                    awaited = awaited.cr_await
        # A task does not tell which asynchronous generator it closes.
        for each in gc.get_objects():
            if isinstance(each, AsyncGeneratorType) and each.ag_running and each.ag_frame:
                yield _module(each.ag_frame)


def _end_soon() -> None:
    """End the process even where a plugin holds up what is logged."""
    sleep(_LOG_SECONDS)
    _exit(1)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
