"""Knows whose code was running when an earlier start of the host came to a sudden end.

A plugin can end the process, or hang it until its client ends it, and would do so at every start.
So while plugins load and start, a file says which of them is being tried. Where it is left behind
by one that hung, or twice without a success between, that plugin is left out for a day, unless it
has been tried successfully or is another version. Once may be chance: clients kill, too.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from standards_mcp._utils.files import of_environment

from .records import PluginRecord, Status

if TYPE_CHECKING:
    import filelock

log = logging.getLogger(__name__)


SLOW_SECONDS: Final = 10.0
"""What takes longer is told, and counts as hanging where the process is ended."""

ENOUGH_DEATHS: Final = 2
"""In so many starts a plugin must have been the last that was tried."""

PENANCE_SECONDS: Final = 86_400.0
"""After so long it is tried again; it may have been unlucky twice."""

_SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGHUP")


class _Entry(TypedDict):
    """A plugin while it is tried, and when it did not survive that.

    Attributes:
        since: When it began, in seconds since 1970.
        deaths: How many starts ended so, one after the other.
    """

    distribution: str
    version: str
    phase: str
    since: float
    deaths: int


class Casualties:
    """The plugins that ended an earlier start, and the one that is being tried now.

    Nothing of it is an error: where the folder cannot be written, nothing is known.

    Args:
        folder: The host's state folder; None to know of nothing and to note nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock: filelock.BaseFileLock | None = None
        self._known: dict[str, _Entry] = {}
        self._phase = ""
        self._tried: set[str] = set()
        self._trying = ""
        self._since = 0.0

    def reason(self, record: PluginRecord) -> str:
        """Return why a plugin is better left out, or an empty string."""
        entry = self._known.get(record.name)
        if not entry or _identity(entry) != (record.distribution, record.version):
            return ""
        if entry["deaths"] < ENOUGH_DEATHS:
            return ""
        if time.time() - entry["since"] > PENANCE_SECONDS:
            return ""
        when = datetime.fromtimestamp(entry["since"], UTC)
        return (
            f"the start of {when:%Y-%m-%d %H:%M} UTC ended or hung while it was loading, so it is "
            "left out for a day; `standards-mcp plugins check` tries it again"
        )

    def learn(self) -> None:
        """Read what earlier starts came to."""
        if self._folder and self._folder.is_dir():
            with self._locked():
                self._learn()

    @contextmanager
    def watch(self, phase: str, records: Iterable[PluginRecord]) -> Generator[None]:
        """Note what is being tried in this context; only one process of a folder does at a time.

        Args:
            phase: Which part of the start it is; who dies in one may have survived another.
            records: All plugins; nothing is noted where only the host's own will be tried.
        """
        if not any(map(_is_suspect, records)):
            yield
            return
        ended = threading.Event()
        self._phase, self._tried = phase, set()
        with self._locked(), self._signals():
            self._learn()
            threading.Thread(target=self._tell_of_hanging, args=(ended,), daemon=True).start()
            try:
                yield
            finally:
                ended.set()
                self._acquit()

    @contextmanager
    def trying(self, record: PluginRecord) -> Generator[None]:
        """Note that a plugin is being tried, and when that has an end, that it has."""
        if not _is_suspect(record):
            yield
            return
        entry = _Entry(
            distribution=record.distribution,
            version=record.version,
            phase=self._phase,
            since=time.time(),
            deaths=0,
        )
        self._since, self._trying = time.monotonic(), record.name
        self._tried.add(record.name)
        self._write("starting", {record.name: entry})
        try:
            yield
        finally:
            self._trying = ""
            self._write("starting", {})

    def _acquit(self) -> None:
        """Forget the deaths of those that have now survived the same part of the start."""
        survived = [
            name
            for name in self._tried & self._known.keys()
            if self._known[name]["phase"] == self._phase
        ]
        for name in survived:
            del self._known[name]
        if survived:
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
        left_behind = self._read("starting")
        for name, entry in left_behind.items():
            hangs = self._hung(entry)
            if self._lock or hangs:
                entry["deaths"] = ENOUGH_DEATHS if hangs else self._deaths(name, entry) + 1
                self._known[name] = entry
        if left_behind:
            self._write("casualties", self._known)
            self._write("starting", {})

    def _hung(self, entry: _Entry) -> bool:
        if not self._lock:  # another process is at it, and need not have come to an end
            return time.time() - entry["since"] > SLOW_SECONDS
        # Half, because clocks are not exact; nothing is signed before the whole is over.
        return self._signed() - entry["since"] > SLOW_SECONDS / 2

    def _deaths(self, name: str, entry: _Entry) -> int:
        before = self._known.get(name)
        return before["deaths"] if before and _identity(before) == _identity(entry) else 0

    def _tell_of_hanging(self, ended: threading.Event) -> None:
        told = ""
        while not ended.wait(1.0):
            name = self._trying
            if name and name != told and time.monotonic() - self._since > SLOW_SECONDS:
                told = name
                self._sign()
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

    def _sign(self) -> None:
        """Touch the file, by which a later start sees that this one hung before it ended."""
        if self._lock and self._folder:
            with suppress(OSError):  # nothing is being tried
                os.utime(of_environment(self._folder, "starting", ".json"))

    def _signed(self) -> float:
        with suppress(OSError):
            if self._folder:
                return of_environment(self._folder, "starting", ".json").stat().st_mtime
        return 0.0

    def _read(self, name: str) -> dict[str, _Entry]:
        if self._folder is None:
            return {}
        try:
            text = of_environment(self._folder, name, ".json").read_bytes()
            return TypeAdapter(dict[str, _Entry]).validate_json(text)
        except (OSError, ValueError):
            return {}

    def _write(self, name: str, entries: dict[str, _Entry]) -> None:
        if self._lock and self._folder:
            with suppress(OSError):
                file = of_environment(self._folder, name, ".json")
                if entries:
                    file.write_text(json.dumps(entries), encoding="utf-8")
                else:
                    file.unlink(missing_ok=True)


def _is_suspect(record: PluginRecord) -> bool:
    """Tell whether a plugin could be a casualty: it is tried, and is not the host's own."""
    return not record.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)


def _identity(entry: _Entry) -> tuple[str, str]:
    return entry["distribution"], entry["version"]
