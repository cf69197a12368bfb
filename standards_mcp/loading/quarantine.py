"""Leave out plugins that end or hang a start, and remember how each plugin started last.

One file has a note about each plugin, also that its code runs now. If a start finds such a note of
a process that has ended, the plugin ended that process, or hung until a client gave up, or a client
ended it by chance. A trial in another process decides. A plugin that ends or hangs this process,
too, is left out for a day. Any other plugin is loaded.
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
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter

from standards_mcp.config.timing import Timing
from standards_mcp.files import FILE_MODE, of_environment, private_folder, write_private

from .records import PluginInfo, PluginRecord, Status

log = logging.getLogger(__name__)

QUARANTINE_SECONDS: Final = 86_400.0
_LOCK_SECONDS: Final = 2.0
_TIME: Final = "%Y-%m-%d %H:%M UTC"
_UNDECIDED: Final = (
    "an earlier start ended or hung while it was loading, and a trial in a process of its own is "
    "not over yet; the next start knows the outcome"
)

Step: TypeAlias = Literal["loading", "starting"]
Trial: TypeAlias = Callable[[PluginInfo, Step], str]
"""Load a plugin in another process, and start it if an earlier start ended while starting it.

Returns how that process ended or hung, else an empty string.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """How a plugin was loaded or started last, and the step that runs or at which a start ended.

    Attributes:
        step: The last step with an outcome.
        time: The time of the outcome, as a text for people.
        attempt: The step whose code runs, or at which a start ended, or None.
        since: Seconds since 1970: of the attempt, of the trial, or of the verdict.
        is_suspect: True if a start ended at this plugin.
        verdict: The reason why it is left out, or an empty string.
    """

    distribution: str
    version: str
    status: Status = Status.DISCOVERED
    reason: str = ""
    step: Step = "loading"
    time: str = ""
    attempt: Step | None = None
    since: float = 0.0
    is_suspect: bool = False
    verdict: str = ""


_Notes: TypeAlias = dict[str, _Note]
_NOTES: Final = TypeAdapter(_Notes)
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
        self._step: Step = "loading"

    def judge(self, info: PluginInfo, *, again: bool) -> str:
        """Return why a plugin is left out, or an empty string; try it if a start ended at it.

        Args:
            again: Also try a plugin that failed a trial, and wait for the end of this trial.
        """
        note = self._notes().get(info.name)
        if note is None or note.attempt is None or not _is_of(info, note):
            return ""
        age = time.time() - note.since
        if note.verdict and age < QUARANTINE_SECONDS and not again:
            return note.verdict
        # Without the lock, another process runs the plugin's code now. It may hang there.
        if not (self._is_locked or again) and age < self._timing.hung:
            return _UNDECIDED if note.is_suspect else ""
        self._change(info, since=time.time(), is_suspect=True, verdict="")
        log.warning(
            "an earlier start ended at plugin %r: it is tried in another process first", info.name
        )
        verdicts: list[str] = []
        # A trial may take longer than clients wait, so the server starts without its outcome.
        trial = threading.Thread(target=self._try, args=(info, note, verdicts), daemon=True)
        trial.start()
        trial.join(None if again else self._timing.patience)
        return verdicts[0] if verdicts else _UNDECIDED

    def _try(self, info: PluginInfo, note: _Note, verdicts: list[str]) -> None:
        """Try a plugin at which a start ended, and keep the verdict, even after this start."""
        how, verdict = self._trial(info, note.attempt or "loading"), ""
        if how:
            verdict = (
                f"the start of {datetime.fromtimestamp(note.since, UTC).strftime(_TIME)} ended "
                "or hung while it was loading, and so did a trial in a process of its own "
                f"({how}). It is left out for a day; `standards-mcp plugins check` tries it again"
            )
            self._change(info, since=time.time(), verdict=verdict)
        else:
            self._change(info, attempt=None, is_suspect=False)
        verdicts.append(verdict)

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
        # The system releases the lock when a process ends. So an attempt that is read with the lock
        # belongs to a process that has ended.
        with suppress(OSError, filelock.Timeout):
            file = of_environment(private_folder(self._folder), "start", ".lock")
            lock = filelock.FileLock(file, mode=FILE_MODE)
            lock.acquire(timeout=0)
            self._is_locked = True
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
            now = time.time()
            self._change(info, attempt=self._step, since=now, is_suspect=False, verdict="")
        try:
            yield
        finally:
            timer.cancel()
            if self._is_locked:
                self._change(info, attempt=None)

    def save(self, records: Iterable[PluginRecord], step: Step) -> None:
        """Write the outcome of each plugin that was tried, if the folder is writable.

        Args:
            step: The last step. Loading says nothing about starting, so a failure to start stays
                until the next start.
        """

        def save(notes: _Notes) -> _Notes:
            outcomes = {
                record.name: _outcome(record, notes.get(record.name), step)
                for record in records
                if record.status in _TRIED
            }
            return notes | outcomes

        self._update(save)

    def restore(self, records: Iterable[PluginRecord]) -> None:
        """Set the status of discovered plugins to the outcome of their last start.

        Outcomes of other versions or distributions are ignored.
        """
        notes = self._notes()
        for record in records:
            if record.status is Status.DISCOVERED:
                note = _note_of(record.info, notes.get(record.name))
                reason = f"{note.reason} (at the last start, {note.time})" if note.reason else ""
                record.status = Status.FAILED if note.verdict else note.status
                record.reason = note.verdict or reason

    def _notes(self) -> _Notes:
        """Return the notes by plugin name; none if the file is missing or damaged."""
        try:
            return _NOTES.validate_json(self._file.read_bytes()) if self._folder else {}
        except (OSError, ValueError):
            return {}

    @property
    def _file(self) -> Path:
        return of_environment(self._folder or Path(), "plugins", ".json")

    def _change(self, info: PluginInfo, **fields: Any) -> None:
        """Change some fields in the note about a plugin."""

        def change(notes: _Notes) -> _Notes:
            return notes | {info.name: replace(_note_of(info, notes.get(info.name)), **fields)}

        self._update(change)

    def _update(self, change: Callable[[_Notes], _Notes]) -> None:
        """Apply a change to the notes as they are now, if the folder is writable."""
        notes = self._notes()
        if self._folder is None or change(notes) == notes:
            return
        import filelock  # noqa: PLC0415  - takes 10 ms, and most commands change nothing

        with suppress(OSError):  # this includes filelock.Timeout
            lock = of_environment(private_folder(self._folder), "plugins", ".lock")
            with filelock.FileLock(lock, _LOCK_SECONDS, FILE_MODE):
                # Renamed, so that a client that kills this process leaves no half of a file.
                scratch = self._file.with_suffix(".new")
                write_private(scratch, _NOTES.dump_json(change(self._notes()), indent=1))
                scratch.replace(self._file)


def _may_crash(record: PluginRecord) -> bool:
    """Return True if a plugin is about to be tried, and does not come with the host."""
    return not record.info.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)


def _outcome(record: PluginRecord, earlier: _Note | None, step: Step) -> _Note:
    note = _note_of(record.info, earlier)
    # Most commands only load plugins; they must not overwrite the last start.
    if record.status is Status.REGISTERED and note.step == "starting":
        return note
    # It failed when it was loaded for this start, and was not started.
    if record.status is Status.FAILED and note.reason == record.reason:
        step = note.step
    now = datetime.now(UTC).strftime(_TIME) if record.reason else ""
    return replace(note, status=record.status, reason=record.reason, step=step, time=now)


def _note_of(info: PluginInfo, note: _Note | None) -> _Note:
    """Return the note, or a new one if it is about another version or distribution."""
    if note and _is_of(info, note):
        return note
    return _Note(distribution=info.distribution, version=info.version)


def _is_of(info: PluginInfo, note: _Note) -> bool:
    return (note.distribution, note.version) == (info.distribution, info.version)
