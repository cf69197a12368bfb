"""Knows whose code was running when an earlier start of the host came to a sudden end.

A plugin can end the process, or hang it until its client ends it, and would do so at every start.
So while plugins load and start, a file says which of them is being tried. Where it is left behind,
that plugin is left out from then on, until it has been tried successfully or is another version.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from .discovery import PluginRecord
from .files import of_environment

if TYPE_CHECKING:
    import filelock

log = logging.getLogger(__name__)

SLOW_SECONDS: Final = 10.0
"""What takes longer is told, and counts as hanging where the process is ended."""
_SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGHUP")


class Casualties:
    """The plugins that ended an earlier start, and the one that is being tried now.

    Nothing of it is an error: where the folder cannot be written, nothing is known.

    Args:
        folder: The host's state folder; None to know of nothing and to note nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock: filelock.BaseFileLock | None = None
        self._known: dict[str, dict[str, str]] = {}
        self._trying = ""
        self._since = 0.0

    def reason(self, record: PluginRecord) -> str:
        """Return why a plugin is better left out, or an empty string."""
        entry = self._known.get(record.name, {})
        if not _identity(record).items() <= entry.items():
            return ""
        return (
            f"the start of {entry.get('time')} ended or hung while it was loading, so it is left "
            "out; `standards-mcp plugins check` tries it again"
        )

    def learn(self) -> None:
        """Read what earlier starts came to."""
        if self._folder and self._folder.is_dir():
            with self._locked():
                self._learn()

    @contextmanager
    def watch(self) -> Generator[None]:
        """Note what is being tried in this context; only one process of a folder does at a time."""
        ended = threading.Event()
        with self._locked(), self._signals():
            self._learn()
            threading.Thread(target=self._tell_of_hanging, args=(ended,), daemon=True).start()
            try:
                yield
            finally:
                ended.set()

    @contextmanager
    def trying(self, record: PluginRecord) -> Generator[None]:
        """Note that a plugin is being tried, and when that has an end, that it has."""
        entry = _identity(record) | {"time": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
        self._since, self._trying = time.monotonic(), record.name
        self._write("starting", {record.name: entry})
        try:
            yield
        finally:
            self._trying = ""
            self._write("starting", {})
            if self._known.pop(record.name, None):
                self._write("casualties", self._known)

    @contextmanager
    def _locked(self) -> Generator[None]:
        import filelock  # noqa: PLC0415  - only where something is loaded

        with suppress(OSError, filelock.Timeout):
            if self._folder:
                self._folder.mkdir(parents=True, exist_ok=True)
                lock = filelock.FileLock(of_environment(self._folder, "starting", ".lock"))
                lock.acquire(timeout=0)
                self._lock = lock
        try:
            yield
        finally:
            if self._lock:
                self._lock.release()
            self._lock = None

    def _learn(self) -> None:
        self._known = self._read("casualties")
        if self._lock or self._is_hanging():
            left_behind = self._read("starting")
            self._known |= left_behind
            if left_behind:
                self._write("casualties", self._known)
                self._write("starting", {})

    def _tell_of_hanging(self, ended: threading.Event) -> None:
        told = ""
        while not ended.wait(1.0):
            name = self._trying
            if name and name != told and time.monotonic() - self._since > SLOW_SECONDS:
                told = name
                log.error("plugin %r is still loading; nothing else can go on", name)

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Blame nobody when somebody else ends the process before anything can be said to hang."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
        for number in ours:
            signal.signal(number, self._end)
        try:
            yield
        finally:
            for number in ours:
                if signal.getsignal(number) == self._end:
                    signal.signal(number, signal.SIG_DFL)

    def _end(self, number: int, _: FrameType | None) -> None:
        if time.monotonic() - self._since < SLOW_SECONDS:
            self._write("starting", {})
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _is_hanging(self) -> bool:
        """Tell whether another process, which holds the lock, has been trying a plugin for long."""
        if self._folder is None:
            return False
        with suppress(OSError):
            file = of_environment(self._folder, "starting", ".json")
            return time.time() - file.stat().st_mtime > SLOW_SECONDS
        return False

    def _read(self, name: str) -> dict[str, dict[str, str]]:
        if self._folder is None:
            return {}
        try:
            text = of_environment(self._folder, name, ".json").read_bytes()
            return TypeAdapter(dict[str, dict[str, str]]).validate_json(text)
        except (OSError, ValueError):
            return {}

    def _write(self, name: str, entries: dict[str, dict[str, str]]) -> None:
        if self._lock and self._folder:
            with suppress(OSError):
                file = of_environment(self._folder, name, ".json")
                if entries:
                    file.write_text(json.dumps(entries), encoding="utf-8")
                else:
                    file.unlink(missing_ok=True)


def _identity(record: PluginRecord) -> dict[str, str]:
    return {"distribution": record.distribution, "version": record.version}
