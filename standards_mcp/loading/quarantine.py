"""Leave out plugins that end or hang a start, and remember how each plugin started last.

A file names the plugin that is being loaded. If a start finds a name there, the previous start
ended at this plugin: the plugin ended it, or hung until a client gave up, or a client ended it by
chance. A trial in another process decides. A plugin that ends or hangs this process, too, is left
out for a day. Any other plugin is loaded.
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


from typing import Literal

from standards_mcp._utils.files import keep_text

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

Returns a description if that process ended or hung, else an empty string.
"""


class _Entry(TypedDict):
    """A plugin at which a start is or ended, or that is left out.

    Attributes:
        phase: ``loading`` or ``starting``.
        since: Seconds since 1970: of the attempt, or of the verdict.
        has_ended: True if the process that tried it has ended.
        verdict: The reason why it is left out, or an empty string.
    """

    distribution: str
    version: str
    phase: str
    since: float
    has_ended: bool
    verdict: str


_ENTRIES: Final = TypeAdapter(dict[str, _Entry])


class Quarantine:
    """Notes the plugin that is being loaded, and leaves out plugins that failed a trial.

    If the folder cannot be read or written, no plugin is suspected.

    Args:
        folder: The host's state folder; None to read and write nothing.
        trial: Tries a plugin at which an earlier start ended.
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
        """Return the verdict of an earlier trial, or an empty string."""
        entry = self._entry(info)
        recent = time.time() - QUARANTINE_SECONDS
        return entry["verdict"] if entry and entry["since"] > recent else ""

    def judge(self, info: PluginInfo, *, again: bool) -> str:
        """Return why a plugin is left out, or an empty string; try it if a start ended at it.

        Args:
            again: Also try a plugin that failed a trial, and wait for the end of this trial.
        """
        entry = self._entry(info)
        why = "" if again else self.reason(info)
        if entry is None or why:
            return why
        log.warning(
            "an earlier start ended at plugin %r: it is tried in another process first", info.name
        )
        # A trial may take longer than clients wait, so the server starts without its outcome.
        trial = threading.Thread(target=self._try, args=(info, entry), daemon=True)
        trial.start()
        trial.join(None if again else self._timing.patience)
        return _UNDECIDED if trial.is_alive() else self.reason(info)

    def load(self) -> None:
        """Read the entries of earlier starts."""
        if self._folder and self._folder.is_dir():
            with self._locked():
                self._load()

    @contextmanager
    def watch(self, phase: str, records: Iterable[PluginRecord]) -> Generator[None]:
        """Let `trying` note plugins in the body, unless another process does so now.

        Args:
            phase: ``loading`` or ``starting``.
            records: All plugins. If all of them are the host's own, nothing is noted.
        """
        # Without the lock and the file, a start takes 10 ms less.
        if not any(map(_may_crash, records)):
            yield
            return
        self._phase = phase
        with self._locked():
            self._load()
            yield

    @contextmanager
    def trying(self, record: PluginRecord) -> Generator[None]:
        """Keep a plugin's name in the file during the body."""
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
        """Try a plugin, and keep the verdict, even after the start."""
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

        # The system releases the lock when a process ends. So a name in the file without a lock
        # belongs to a plugin at which a process ended.
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
        if self._lock:  # no other process is loading, so all entries are of ended processes
            for name, entry in [*self._entries.items()]:
                if not entry["has_ended"]:
                    self._set(name, {**entry, "has_ended": True})
            return
        # Another process is loading. A plugin that takes so long hangs, and is suspected.
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
    """Return True if a plugin is about to be tried, and does not come with the host."""
    return not record.info.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)


Step: TypeAlias = Literal["load", "start"]
Outcome: TypeAlias = dict[str, str]


_OUTCOMES = TypeAdapter(dict[str, dict[str, str]])
_TRIED = (Status.FAILED, Status.REGISTERED, Status.STARTED)


def save(records: Iterable[PluginRecord], folder: Path, step: Step) -> None:
    """Write the outcome of each plugin that was tried, if the folder is writable.

    Args:
        folder: The host's state folder.
        step: The last step. Loading says nothing about starting, so a failure to start stays until
            the next start.
    """
    earlier = _read(folder)
    outcomes = {
        record.name: _outcome(record, earlier.get(record.name, {}), step)
        for record in records
        if record.status in _TRIED
    }
    keep_text(_file(folder), json.dumps({**earlier, **outcomes}, indent=1, sort_keys=True))


def restore(records: Iterable[PluginRecord], folder: Path) -> None:
    """Set the status of discovered plugins to the outcome of their last start.

    Outcomes of other versions or distributions are ignored.
    """
    outcomes = _read(folder)
    for record in records:
        outcome = outcomes.get(record.name, {})
        if record.status is not Status.DISCOVERED or not _is_of(record.info, outcome):
            continue
        # Another version of the host may have written other keys.
        with suppress(KeyError, ValueError):
            reason = f"{outcome['reason']} (at the last start, {outcome['time']})"
            record.status = Status(outcome["status"])
            record.reason = reason if outcome["reason"] else ""


def _outcome(record: PluginRecord, earlier: Outcome, step: Step) -> Outcome:
    if _is_of(record.info, earlier):
        started_before = earlier.get("step") == "start"
        # Most commands only load plugins; they must not overwrite the last start.
        if record.status is Status.REGISTERED and started_before:
            return earlier
        if record.status is Status.FAILED and not started_before and step == "start":
            # It failed when it was loaded for this start, and was not started.
            step = "load" if earlier.get("reason") == record.reason else step
    return {
        **_identity(record.info),
        "status": str(record.status),
        "reason": record.reason,
        "step": step,
        "time": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _read(folder: Path) -> dict[str, Outcome]:
    """Return the outcomes by plugin name; empty if the file is missing or damaged."""
    try:
        return _OUTCOMES.validate_json(_file(folder).read_bytes())
    except (OSError, ValueError):
        return {}


def _is_of(info: PluginInfo, outcome: Outcome) -> bool:
    return _identity(info).items() <= outcome.items()


def _identity(info: PluginInfo) -> dict[str, str]:
    return {"distribution": info.distribution, "version": info.version}


def _file(folder: Path) -> Path:
    return of_environment(folder, "last-start", ".json")
