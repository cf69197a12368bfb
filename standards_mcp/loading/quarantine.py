"""Leave out plugins that end or hang the process while they are loaded or started.

A file names the plugin that is being loaded. If a start finds a name there, the start before ended
at this plugin: the plugin ended it, or hung until a client gave up, or a client ended it by chance.
A trial in another process decides. A plugin that ends or hangs that process, too, is left out for a
day, and any other is loaded.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from standards_mcp._utils.files import FILE_MODE, of_environment, private_folder, write_private
from standards_mcp.config.timing import Timing

from .records import PluginInfo, PluginRecord, Status

if TYPE_CHECKING:
    import filelock

log = logging.getLogger(__name__)

QUARANTINE_SECONDS: Final = 86_400.0
_NAME: Final = "quarantine"
_LOCK_SECONDS: Final = 10.0
_UNDECIDED: Final = (
    "an earlier start ended or hung while it was loading, and a trial in a process of its own is "
    "not over yet; the next start knows the outcome"
)

Trial: TypeAlias = Callable[[PluginInfo, str], str]
"""Load a plugin in another process, and start it in the phase ``starting``.

Returns how that process ended or hung, or an empty string if it did not.
"""


class _Entry(TypedDict):
    """A plugin that is being loaded or started, or was when the process ended, or is left out.

    Attributes:
        phase: ``loading`` or ``starting``.
        since: Seconds since 1970: of the attempt, or of the verdict.
        has_ended: True if the process that tried it has ended.
        verdict: Why it is left out, or an empty string.
    """

    distribution: str
    version: str
    phase: str
    since: float
    has_ended: bool
    verdict: str


_ENTRIES: Final = TypeAdapter(dict[str, _Entry])


class Quarantine:
    """Names the plugin that is being loaded now, and leaves out those that a trial has refused.

    A folder that cannot be read or written is no error; then no plugin is suspected.

    Args:
        folder: The host's state folder; None to read and write nothing.
        trial: Tries a plugin that an earlier start ended at.
    """

    def __init__(self, folder: Path | None, timing: Timing, trial: Trial) -> None:
        self._timing = timing
        self._trial = trial
        self._folder = folder
        self._lock: filelock.BaseFileLock | None = None
        self._entries: dict[str, _Entry] = {}
        self._changing = threading.Lock()
        self._phase = ""

    def reason(self, info: PluginInfo) -> str:
        """Return why a plugin is left out without another trial, or an empty string."""
        entry = self._entry(info)
        recent = time.time() - QUARANTINE_SECONDS
        return entry["verdict"] if entry and entry["since"] > recent else ""

    def judge(self, info: PluginInfo, *, again: bool) -> str:
        """Return why a plugin is left out, or an empty string; try it if a start ended at it.

        Args:
            again: Also try a plugin that was refused before, and wait for the end of the trial.
        """
        entry = self._entry(info)
        why = "" if again else self.reason(info)
        if entry is None or why:
            return why
        log.warning(
            "an earlier start ended at plugin %r: it is tried in another process first", info.name
        )
        # A trial may take longer than a client waits for the server. It goes on beside the server.
        trial = threading.Thread(target=self._try, args=(info, entry), daemon=True)
        trial.start()
        trial.join(None if again else self._timing.patience)
        return _UNDECIDED if trial.is_alive() else self.reason(info)

    def load(self) -> None:
        """Read what earlier starts have left."""
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
        self._phase = phase
        with self._locked():
            self._load()
            yield

    @contextmanager
    def trying(self, record: PluginRecord) -> Generator[None]:
        """Name a plugin in the file while the body tries it."""
        if not _may_crash(record):
            yield
            return
        info = record.info
        message = "plugin %r is still loading; nothing else can go on"
        # A plugin that hangs blocks this thread and the event loop, so another thread logs.
        timer = threading.Timer(self._timing.hung, log.error, (message, info.name))
        timer.daemon = True
        timer.start()
        entry = _Entry(
            distribution=info.distribution,
            version=info.version,
            phase=self._phase,
            since=time.time(),
            has_ended=False,
            verdict="",
        )
        self._set(info.name, entry)
        try:
            yield
        finally:
            timer.cancel()
            self._set(info.name, None)

    def _entry(self, info: PluginInfo) -> _Entry | None:
        entry = self._entries.get(info.name)
        identity = (info.distribution, info.version)
        return entry if entry and (entry["distribution"], entry["version"]) == identity else None

    def _try(self, info: PluginInfo, entry: _Entry) -> None:
        """Try a plugin, and keep the verdict, also if the start is over by then."""
        how, now = self._trial(info, entry["phase"]), time.time()
        verdict = (
            f"the start of {datetime.fromtimestamp(entry['since'], UTC):%Y-%m-%d %H:%M} UTC ended "
            f"or hung while it was loading, and so did a trial in a process of its own ({how}). It "
            "is left out for a day; `standards-mcp plugins check` tries it again"
        )
        decided: _Entry | None = {**entry, "since": now, "verdict": verdict} if how else None
        if self._lock:
            self._set(info.name, decided)
            return
        with self._locked(_LOCK_SECONDS):
            self._load()
            self._set(info.name, decided)

    @contextmanager
    def _locked(self, seconds: float = 0) -> Generator[None]:
        import filelock  # noqa: PLC0415  - only where something is loaded

        # The system releases the lock when a process ends: a name in the file without a lock is
        # that of a plugin which its process did not survive.
        held: filelock.BaseFileLock | None = None
        with suppress(OSError, filelock.Timeout):
            if self._folder:
                private_folder(self._folder)
                file = of_environment(self._folder, _NAME, ".lock")
                lock = filelock.FileLock(file, mode=FILE_MODE)
                lock.acquire(timeout=seconds)
                held = self._lock = lock
        try:
            yield
        finally:
            if held:
                held.release()
                self._lock = None

    def _load(self) -> None:
        self._entries = {}
        if self._folder is None:
            return
        with suppress(OSError, ValueError):
            text = of_environment(self._folder, _NAME, ".json").read_bytes()
            self._entries = _ENTRIES.validate_json(text)
        if self._lock:  # no other process is loading; tell those that start beside this one
            for name, entry in [*self._entries.items()]:
                if not entry["has_ended"]:
                    self._set(name, {**entry, "has_ended": True})
            return
        # Another process is loading. After so long its plugin hangs, and is suspected.
        recent = time.time() - self._timing.hung
        self._entries = {
            name: entry
            for name, entry in self._entries.items()
            if entry["has_ended"] or entry["since"] < recent
        }

    def _set(self, name: str, entry: _Entry | None) -> None:
        """Keep the entry of a plugin, or forget it."""
        with self._changing, suppress(OSError):  # a trial may end at any moment
            self._entries.pop(name, None)
            if entry:
                self._entries[name] = entry
            if not self._lock or not self._folder:
                return
            file = of_environment(self._folder, _NAME, ".json")
            if self._entries:
                write_private(file, json.dumps(self._entries))
            else:
                file.unlink(missing_ok=True)


def _may_crash(record: PluginRecord) -> bool:
    """Tell whether a plugin is to be tried, and does not come with the host."""
    return not record.info.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)
