"""Leave out plugins that end or hang a start, and remember how each plugin started last.

A file names the plugin that is being loaded. If a start finds a name there, the previous start
ended at this plugin: the plugin ended it, or hung until a client gave up, or a client ended it by
chance. A trial in another process decides. A plugin that ends or hangs this process, too, is left
out for a day. Any other plugin is loaded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from pydantic import TypeAdapter

from standards_mcp._utils.files import (
    FILE_MODE,
    keep_text,
    of_environment,
    private_folder,
    write_private,
)
from standards_mcp.config.timing import Timing

from .records import PluginInfo, PluginRecord, Status

log = logging.getLogger(__name__)

QUARANTINE_SECONDS: Final = 86_400.0
_NAME: Final = "quarantine"
_OUTCOMES_NAME: Final = "last-start"
_UNDECIDED: Final = (
    "an earlier start ended or hung while it was loading, and a trial in a process of its own is "
    "not over yet; the next start knows the outcome"
)

_T = TypeVar("_T")

Step: TypeAlias = Literal["loading", "starting"]
Trial: TypeAlias = Callable[[PluginInfo, Step], str]
"""Load a plugin in another process, and start it if an earlier start ended while starting it.

Returns how that process ended or hung, else an empty string.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A plugin whose code runs, or at which a start ended.

    Attributes:
        since: Seconds since 1970: of the attempt, of the trial, or of the verdict.
        is_suspect: True if a start ended at this plugin.
        verdict: The reason why it is left out, or an empty string.
    """

    distribution: str
    version: str
    step: Step
    since: float
    is_suspect: bool = False
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """How a plugin was loaded or started last; *time* is a text for people."""

    distribution: str
    version: str
    status: Status
    reason: str
    step: Step
    time: str


_ENTRIES: Final = TypeAdapter(dict[str, _Entry])
_OUTCOMES: Final = TypeAdapter(dict[str, _Outcome])
_TRIED: Final = (Status.FAILED, Status.REGISTERED, Status.STARTED)


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
        self._is_locked = False
        self._entries: dict[str, _Entry] = {}
        self._step: Step = "loading"

    def judge(self, info: PluginInfo, *, again: bool) -> str:
        """Return why a plugin is left out, or an empty string; try it if a start ended at it.

        Args:
            again: Also try a plugin that failed a trial, and wait for the end of this trial.
        """
        entry = self._entries.get(info.name)
        if entry is None or not _is_of(info, entry):
            return ""
        age = time.time() - entry.since
        if entry.verdict and age < QUARANTINE_SECONDS and not again:
            return entry.verdict
        # Without the lock, another process runs the plugin's code now. It may hang there.
        if not (self._is_locked or again) and age < self._timing.hung:
            return _UNDECIDED if entry.is_suspect else ""
        suspect = replace(entry, since=time.time(), is_suspect=True, verdict="")
        self._set(info.name, suspect)
        log.warning(
            "an earlier start ended at plugin %r: it is tried in another process first", info.name
        )
        # A trial may take longer than clients wait, so the server starts without its outcome.
        trial = threading.Thread(target=self._try, args=(info, suspect, entry.since), daemon=True)
        trial.start()
        trial.join(None if again else self._timing.patience)
        if trial.is_alive():
            return _UNDECIDED
        judged = self._entries.get(info.name)
        return judged.verdict if judged else ""

    def _try(self, info: PluginInfo, suspect: _Entry, ended: float) -> None:
        """Try a plugin, and keep the verdict, even after the start; *ended* is a time of it."""
        how = self._trial(info, suspect.step)
        if not self._is_locked:  # the start is over, and another may have written since
            self._entries = self._read(_NAME, _ENTRIES)
        if not how:
            self._set(info.name, None)
            return
        verdict = (
            f"the start of {datetime.fromtimestamp(ended, UTC):%Y-%m-%d %H:%M} UTC ended "
            f"or hung while it was loading, and so did a trial in a process of its own ({how}). It "
            "is left out for a day; `standards-mcp plugins check` tries it again"
        )
        self._set(info.name, replace(suspect, since=time.time(), verdict=verdict))

    @contextmanager
    def watch(self, step: Step, records: Iterable[PluginRecord]) -> Generator[None]:
        """Let `trying` note plugins in the body, unless another process does so now.

        Args:
            records: All plugins. If all of them are the host's own, nothing is noted.
        """
        # Without the lock and the file, a start takes 10 ms less.
        if self._folder is None or not any(map(_may_crash, records)):
            yield
            return
        import filelock  # noqa: PLC0415  - only where something is loaded

        self._step = step
        lock: filelock.BaseFileLock | None = None
        # The system releases the lock when a process ends. So an entry that is read with the lock
        # belongs to a process that has ended.
        with suppress(OSError, filelock.Timeout):
            file = of_environment(private_folder(self._folder), _NAME, ".lock")
            lock = filelock.FileLock(file, mode=FILE_MODE)
            lock.acquire(timeout=0)
            self._is_locked = True
        self._entries = self._read(_NAME, _ENTRIES)
        try:
            yield
        finally:
            if self._is_locked and lock:
                self._is_locked = False
                lock.release()

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
        if self._is_locked:
            entry = _Entry(
                distribution=info.distribution,
                version=info.version,
                step=self._step,
                since=time.time(),
            )
            self._set(info.name, entry)
        try:
            yield
        finally:
            timer.cancel()
            if self._is_locked:
                self._set(info.name, None)

    def save(self, records: Iterable[PluginRecord], step: Step) -> None:
        """Write the outcome of each plugin that was tried, if the folder is writable.

        Args:
            step: The last step. Loading says nothing about starting, so a failure to start stays
                until the next start.
        """
        if self._folder is None:
            return
        earlier = self._read(_OUTCOMES_NAME, _OUTCOMES)
        outcomes = {
            record.name: _outcome(record, earlier.get(record.name), step)
            for record in records
            if record.status in _TRIED
        }
        text = _OUTCOMES.dump_json(earlier | outcomes, indent=1).decode()
        keep_text(of_environment(self._folder, _OUTCOMES_NAME, ".json"), text)

    def restore(self, records: Iterable[PluginRecord]) -> None:
        """Set the status of discovered plugins to the outcome of their last start.

        Outcomes of other versions or distributions are ignored.
        """
        outcomes = self._read(_OUTCOMES_NAME, _OUTCOMES)
        entries = self._read(_NAME, _ENTRIES)  # a trial may have ended after the start
        for record in records:
            if record.status is not Status.DISCOVERED:
                continue
            outcome, entry = outcomes.get(record.name), entries.get(record.name)
            if entry and entry.verdict and _is_of(record.info, entry):
                record.status, record.reason = Status.FAILED, entry.verdict
            elif outcome and _is_of(record.info, outcome):
                reason = f"{outcome.reason} (at the last start, {outcome.time})"
                record.status, record.reason = outcome.status, reason if outcome.reason else ""

    def _read(self, name: str, content: TypeAdapter[dict[str, _T]]) -> dict[str, _T]:
        """Return the content of a file by plugin name; empty if it is missing or damaged."""
        try:
            folder = self._folder
            return content.validate_json(
                of_environment(folder, name, ".json").read_bytes() if folder else b"{}"
            )
        except (OSError, ValueError):
            return {}

    def _set(self, name: str, entry: _Entry | None) -> None:
        """Keep the entry of a plugin, or forget it."""
        self._entries.pop(name, None)
        if entry:
            self._entries[name] = entry
        if self._folder is None:
            return
        file = of_environment(self._folder, _NAME, ".json")
        with suppress(OSError):
            if self._entries:
                write_private(file, _ENTRIES.dump_json(self._entries))
            else:
                file.unlink(missing_ok=True)


def _may_crash(record: PluginRecord) -> bool:
    """Return True if a plugin is about to be tried, and does not come with the host."""
    return not record.info.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)


def _outcome(record: PluginRecord, earlier: _Outcome | None, step: Step) -> _Outcome:
    if earlier and _is_of(record.info, earlier):
        # Most commands only load plugins; they must not overwrite the last start.
        if record.status is Status.REGISTERED and earlier.step == "starting":
            return earlier
        # It failed when it was loaded for this start, and was not started.
        if record.status is Status.FAILED and earlier.reason == record.reason:
            step = earlier.step
    return _Outcome(
        distribution=record.info.distribution,
        version=record.info.version,
        status=record.status,
        reason=record.reason,
        step=step,
        time=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _is_of(info: PluginInfo, noted: _Entry | _Outcome) -> bool:
    return (noted.distribution, noted.version) == (info.distribution, info.version)
