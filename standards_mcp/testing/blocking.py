"""Find code that blocks the event loop.

A thread schedules a callback in the loop, again and again. Until the callback runs, the thread
samples the stack of the loop's thread, and counts a sample only if it is in the plugin's code: so a
busy machine does not look like a blocking plugin. Imports do not count, since they happen once.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import sys
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

_LOOKS: Final = 10
_STEP: Final = asyncio.events.Handle._run.__code__  # pyright: ignore[reportPrivateUsage] # noqa: SLF001


class LoopMonitor:
    """Watches the event loop of the thread that makes it.

    Args:
        package: The top-level package of the plugin.
        seconds: Time for which the plugin may block.

    Attributes:
        locations: The places that blocked for longer, such as ``plugin.py:12 (open)``.
    """

    def __init__(self, package: str, seconds: float) -> None:
        self.locations: dict[str, None] = {}
        self._package = package
        self._step = seconds / _LOOKS
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._ended = threading.Event()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Watch while the code inside runs."""
        thread = threading.Thread(target=self._watch, name="loop monitor", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._step):
            alive = threading.Event()
            self._loop.call_soon_threadsafe(alive.set)
            seen: Counter[str] = Counter()
            while not alive.wait(self._step) and not self._ended.is_set():
                # C code that blocks with the GIL held is not found, because this thread does not
                # run then either.
                seen.update(_location(sys._current_frames().get(self._thread), self._package))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if seen.total() >= _LOOKS:
                self.locations[seen.most_common(1)[0][0]] = None


def _location(frame: FrameType | None, package: str) -> list[str]:
    """Return the innermost line of *package* within the loop's current step, or []."""
    location: list[str] = []
    while frame is not None and frame.f_code is not _STEP:
        module = str(frame.f_globals.get("__name__", ""))
        if module == "importlib._bootstrap":
            return []
        if not location and module.partition(".")[0] == package:
            code = frame.f_code
            location = [f"{Path(code.co_filename).name}:{frame.f_lineno} ({code.co_name})"]
        frame = frame.f_back
    return location if frame is not None else []
