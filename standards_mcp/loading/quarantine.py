"""Leaves out plugins that ended or hung the process while they were loaded or started.

Such a plugin would do so at every start, and nothing else would be served. So a file names the
plugin that is being loaded. If a start finds the file left behind, that plugin has crashed. After
two crashes within a day, without a success between, it is left out for a day. One crash may be
chance, because clients end the process, too.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from standards_mcp._utils.files import of_environment
from standards_mcp._utils.private import FILE_MODE, private_folder, write_private

from .records import PluginInfo, PluginRecord, Status

if TYPE_CHECKING:
    import filelock

log = logging.getLogger(__name__)

MAX_CRASHES: Final = 2
QUARANTINE_SECONDS: Final = 86_400.0
_STARTUP: Final = "startup"
_CRASHES: Final = "crashes"


class _Attempt(TypedDict):
    """An attempt to load or to start a plugin.

    Attributes:
        phase: ``loading`` or ``starting``; a plugin that crashes in one may pass the other.
        since: When it began, in seconds since 1970.
    """

    name: str
    distribution: str
    version: str
    phase: str
    since: float


_ATTEMPTS: Final = TypeAdapter(list[_Attempt])


class Quarantine:
    """Keeps the crashes of earlier starts, and names the plugin that is being loaded now.

    A folder that cannot be read or written is no error; then no crash is known.

    Args:
        folder: The host's state folder; None to read and write nothing.
        hung_seconds: See `Timing.hung`.
    """

    def __init__(self, folder: Path | None, hung_seconds: float) -> None:
        self._hung_seconds = hung_seconds
        self._folder = folder
        self._lock: filelock.BaseFileLock | None = None
        self._crashes: list[_Attempt] = []
        self._phase = ""
        self._passed: set[str] = set()

    def reason(self, info: PluginInfo) -> str:
        """Return why a plugin is left out, or an empty string."""
        recent = time.time() - QUARANTINE_SECONDS
        crashes = [
            each["since"]
            for each in self._crashes
            if each["since"] > recent and _identity(each) == (info.distribution, info.version)
            if each["name"] == info.name
        ]
        if len(crashes) < MAX_CRASHES:
            return ""
        when = datetime.fromtimestamp(max(crashes), UTC)
        return (
            f"the start of {when:%Y-%m-%d %H:%M} UTC ended or hung while it was loading, so it is "
            "left out for a day; `standards-mcp plugins check` tries it again"
        )

    def load(self) -> None:
        """Read the crashes of earlier starts."""
        if self._folder and self._folder.is_dir():
            with self._locked():
                self._load()

    @contextmanager
    def watch(self, phase: str, records: Iterable[PluginRecord]) -> Generator[None]:
        """Note the plugins that `trying` names in the body, unless another process does so now.

        Args:
            phase: ``loading`` or ``starting``.
            records: All plugins. If only the host's own are tried, nothing is noted.
        """
        if not any(map(_may_crash, records)):
            yield
            return
        self._phase, self._passed = phase, set()
        with self._locked():
            self._load()
            try:
                yield
            finally:
                self._clear()

    @contextmanager
    def trying(self, record: PluginRecord) -> Generator[None]:
        """Name a plugin in the file while the body tries it, and then that it has passed."""
        if not _may_crash(record):
            yield
            return
        info = record.info
        attempt = _Attempt(
            name=info.name,
            distribution=info.distribution,
            version=info.version,
            phase=self._phase,
            since=time.time(),
        )
        message = "plugin %r is still loading; nothing else can go on"
        # A plugin that hangs blocks this thread and the event loop, so another thread logs.
        timer = threading.Timer(self._hung_seconds, log.error, (message, info.name))
        timer.daemon = True
        timer.start()
        self._write(_STARTUP, [attempt])
        try:
            yield
        finally:
            timer.cancel()
            self._passed.add(info.name)
            self._write(_STARTUP, [])

    def _clear(self) -> None:
        """Forget the crashes of plugins that have now passed the same phase."""
        kept = [
            each
            for each in self._crashes
            if each["name"] not in self._passed or each["phase"] != self._phase
        ]
        if kept != self._crashes:
            self._crashes = kept
            self._write(_CRASHES, kept)

    @contextmanager
    def _locked(self) -> Generator[None]:
        import filelock  # noqa: PLC0415  - only where something is loaded

        # The system releases the lock when a process ends: a name in the file without a lock is
        # that of a plugin which its process did not survive.
        with suppress(OSError, filelock.Timeout):
            if self._folder:
                private_folder(self._folder)
                file = of_environment(self._folder, _STARTUP, ".lock")
                lock = filelock.FileLock(file, mode=FILE_MODE)
                lock.acquire(timeout=0)
                self._lock = lock
        try:
            yield
        finally:
            if self._lock:
                self._lock.release()
            self._lock = None

    def _load(self) -> None:
        self._crashes = self._read(_CRASHES)
        left_behind = self._read(_STARTUP)
        if self._lock:
            self._crashes += left_behind
            if left_behind:
                self._write(_CRASHES, self._crashes)
                self._write(_STARTUP, [])
            return
        # Another process holds the lock and is loading. After so long its plugin hangs, which is
        # proof enough: it counts as often as it takes to be left out.
        hung = [each for each in left_behind if time.time() - each["since"] > self._hung_seconds]
        self._crashes += hung * MAX_CRASHES

    def _read(self, name: str) -> list[_Attempt]:
        if self._folder is None:
            return []
        try:
            text = of_environment(self._folder, name, ".json").read_bytes()
            return _ATTEMPTS.validate_json(text)
        except (OSError, ValueError):
            return []

    def _write(self, name: str, attempts: list[_Attempt]) -> None:
        if self._lock and self._folder:
            with suppress(OSError):
                file = of_environment(self._folder, name, ".json")
                if attempts:
                    write_private(file, json.dumps(attempts))
                else:
                    file.unlink(missing_ok=True)


def _may_crash(record: PluginRecord) -> bool:
    """Tell whether a plugin is to be tried, and does not come with the host."""
    return not record.info.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)


def _identity(attempt: _Attempt) -> tuple[str, str]:
    return attempt["distribution"], attempt["version"]
