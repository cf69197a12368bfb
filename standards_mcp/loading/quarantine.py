"""Leave out plugins that end or hang the host's start, and keep the outcome of each last start.

A file has a note about each plugin. While the code of a plugin is loaded or started, another file
has its *attempt*. If a later start finds an attempt of a process that has ended, then the plugin
ended that process, or hung until a client gave up, or a client ended the process by chance. A trial
in another process decides: a plugin that ends or hangs the trial, too, is left out for a day. Any
other plugin is loaded.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from standards_mcp.config.timing import Timing
from standards_mcp.files import FILE_MODE, of_environment, private_folder, replace_privately

from .records import PluginInfo, PluginRecord, Status

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

log = logging.getLogger(__name__)

QUARANTINE_SECONDS: Final = 86_400.0
_ATTEMPT_BYTES: Final = 4096
_LOCK_SECONDS: Final = 2.0
_TIME: Final = "%Y-%m-%d %H:%M UTC"
_UNDECIDED: Final = (
    "an earlier start ended or hung while loading it, and its trial in a separate process is not "
    "over yet; the next start uses the result"
)

Step: TypeAlias = Literal["loading", "starting"]
_STEPS: Final = get_args(Step)
Trial: TypeAlias = Callable[[PluginInfo, Step], str]
"""Load a plugin in another process, and start it if an earlier start ended while starting it.

Returns how that process ended or hung, else an empty string.
"""


class _Note(NamedTuple):
    """The outcome of a plugin's last load or start, and its unfinished attempt.

    Attributes:
        step: The last step with an outcome.
        time: The time of the outcome, as a text for people.
        attempt: The step at which a start ended; else None.
        since: The time of the last attempt, trial or verdict, in seconds since 1970.
        is_suspect: True if a start ended at this plugin, and no trial has passed since.
        verdict: The reason why the plugin is left out, or an empty string.
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
_OUTCOME_STATUSES: Final = (Status.FAILED, Status.REGISTERED, Status.STARTED)


class Quarantine:
    """Records which plugin is being loaded, and leaves out plugins that failed a trial.

    If the folder cannot be read or written, no plugin is suspected.

    Args:
        folder: The host's state folder; None to read and write nothing.
        trial: Tries a plugin at which an earlier start ended.
    """

    def __init__(self, folder: Path | None, timing: Timing, trial: Trial) -> None:
        self._timing = timing
        self._trial = trial
        self._folder = folder
        self._file = of_environment(folder or Path(), "plugins", ".json")
        self._attempt_file = of_environment(folder or Path(), "plugins", ".attempt")
        self._step: Step = "loading"
        self._attempts: int | None = None  # the file of attempts, locked by this process
        self._current: tuple[str, float] | None = None  # the attempt's plugin and deadline
        self._watchdog = threading.Thread()

    def judge(self, info: PluginInfo, *, again: bool) -> str:
        """Return why a plugin is left out, or an empty string. Run a trial if a start ended at it.

        Args:
            again: Run a new trial even after a failed one, and wait for its end.
        """
        note = self._read_attempt(info) or self._notes_at_start.get(info.name)
        if note is None or note.attempt is None or not _matches(info, note):
            return ""
        age = time.time() - note.since
        if note.verdict and age < QUARANTINE_SECONDS and not again:
            return note.verdict
        # Another process has the lock, and may be running the plugin's code right now.
        if self._attempts is None and not again and age < self._timing.hung:
            return _UNDECIDED if note.is_suspect else ""
        attempt = note.attempt
        self._set_fields(info, attempt=attempt, since=time.time(), is_suspect=True, verdict="")
        log.warning(
            "an earlier start ended at plugin %r; it is first tried in another process", info.name
        )
        verdicts: list[str] = []
        # A trial may take longer than clients wait, so the server starts without its outcome.
        trial = threading.Thread(target=self._run_trial, args=(info, note, verdicts), daemon=True)
        trial.start()
        trial.join(None if again else self._timing.patience)
        return verdicts[0] if verdicts else _UNDECIDED

    def _run_trial(self, info: PluginInfo, note: _Note, verdicts: list[str]) -> None:
        """Run a trial, and write its verdict, even if this start has gone on without it."""
        failure, verdict = self._trial(info, note.attempt or "loading"), ""
        if failure:
            verdict = (
                f"the start of {datetime.fromtimestamp(note.since, UTC).strftime(_TIME)} ended "
                "or hung while loading it, and so did a trial in a separate process "
                f"({failure}). It is left out for a day; `standards-mcp plugins check` tries it "
                "again"
            )
            self._set_fields(info, since=time.time(), verdict=verdict)
        else:
            self._set_fields(info, attempt=None, is_suspect=False)
        verdicts.append(verdict)

    @contextmanager
    def watch(self, step: Step, records: Iterable[PluginRecord]) -> Generator[None]:
        """Let `attempt` record attempts in the body, unless another process is recording.

        Args:
            records: All plugins. If all of them are the host's own, nothing is recorded.
        """
        if self._folder is None or not any(map(_may_crash, records)):
            yield
            return
        self._step = step
        with suppress(OSError):
            private_folder(self._folder)
            self._attempts = _open_locked(self._attempt_file)
        try:
            yield
        finally:
            if self._attempts is not None:
                self._write_attempt(b"")
                with suppress(OSError):
                    if sys.platform != "win32":  # a process that a plugin forked has it open, too
                        fcntl.flock(self._attempts, fcntl.LOCK_UN)
                    os.close(self._attempts)
                self._attempts = None

    @contextmanager
    def attempt(self, record: PluginRecord) -> Generator[None]:
        """Record an attempt for a plugin during the body, and log an error if it hangs."""
        if not _may_crash(record):
            yield
            return
        self._current = record.name, time.monotonic() + self._timing.hung
        # A plugin that hangs blocks this thread and the event loop, so another thread logs; one for
        # all plugins, since to start one for each takes a fiftieth of a start.
        if not self._watchdog.is_alive():
            self._watchdog = threading.Thread(target=self._report_hang, daemon=True)
            self._watchdog.start()
        note = _note_of(record.info, None)._replace(attempt=self._step, since=time.time())
        self._write_attempt(_encoded({record.info.name: note}))
        try:
            yield
        finally:
            self._current = None
            self._write_attempt(b"")

    def _report_hang(self) -> None:
        """Log an error when one attempt takes too long; end when none runs."""
        while current := self._current:
            name, deadline = current
            time.sleep(max(0, deadline - time.monotonic()))
            if self._current is current:
                log.error("plugin %r is still loading, and nothing else can load meanwhile", name)
                break

    def save(self, records: Iterable[PluginRecord], step: Step) -> None:
        """Write the outcome of each plugin that was tried, if the folder is writable.

        Args:
            step: The last step. An earlier failure to start is kept if plugins were only loaded.
        """

        def with_outcomes(notes: _Notes) -> _Notes:
            outcomes = {
                record.name: _outcome(record, notes.get(record.name), step)
                for record in records
                if record.status in _OUTCOME_STATUSES
            }
            return notes | outcomes

        self._rewrite(with_outcomes)

    def restore(self, records: Iterable[PluginRecord]) -> None:
        """Set the status of discovered plugins to the outcome of their last start.

        Outcomes of other versions or distributions are ignored.
        """
        notes = self._read_notes()
        for record in records:
            if record.status is Status.DISCOVERED:
                note = _note_of(record.info, notes.get(record.name))
                reason = f"{note.reason} (at the last start, {note.time})" if note.reason else ""
                record.status = Status.FAILED if note.verdict else note.status
                record.reason = note.verdict or reason

    def _write_attempt(self, data: bytes) -> None:
        """Write the attempt that runs now, in one call: a kill must leave all or nothing of it."""
        if self._attempts is not None:
            with suppress(OSError):
                os.lseek(self._attempts, 0, os.SEEK_SET)
                os.write(self._attempts, data.ljust(_ATTEMPT_BYTES))

    def _read_attempt(self, info: PluginInfo) -> _Note | None:
        """Return the note of a plugin with an attempt that runs, or at which a start ended."""
        try:
            text = self._attempt_file.read_bytes() if self._folder else b""
            attempts = _parsed(text) if text.strip() else {}
        except (OSError, ValueError):
            return None
        attempt = attempts.get(info.name)
        if attempt is None or not _matches(info, attempt):
            return None
        note = _note_of(info, self._read_notes().get(info.name))
        return note._replace(attempt=attempt.attempt, since=attempt.since)

    def _read_notes(self) -> _Notes:
        """Return the notes by plugin name; none if the file is missing or damaged."""
        try:
            return _parsed(self._file.read_bytes()) if self._folder else {}
        except (OSError, ValueError):
            return {}

    @cached_property
    def _notes_at_start(self) -> _Notes:
        """The notes for `judge`, which is asked about each plugin in turn."""
        return self._read_notes()

    def _set_fields(self, info: PluginInfo, **fields: Any) -> None:
        """Change some fields in the note about a plugin."""

        def change(notes: _Notes) -> _Notes:
            return notes | {info.name: _note_of(info, notes.get(info.name))._replace(**fields)}

        self._rewrite(change)

    def _rewrite(self, change: Callable[[_Notes], _Notes]) -> None:
        """Read the notes, apply a change, and write them, if the folder is writable."""
        notes = self._read_notes()
        if self._folder is None or change(notes) == notes:
            return
        vars(self).pop("_notes_at_start", None)  # a trial changes them
        import filelock  # noqa: PLC0415  - takes 10 ms, and most commands change nothing

        with suppress(OSError):  # this includes filelock.Timeout
            lock = of_environment(private_folder(self._folder), "plugins", ".lock")
            with filelock.FileLock(lock, _LOCK_SECONDS, FILE_MODE):
                replace_privately(self._file, _encoded(change(self._read_notes())))


def _encoded(notes: _Notes) -> bytes:
    return json.dumps({name: note._asdict() for name, note in notes.items()}).encode()


def _parsed(data: bytes) -> _Notes:
    """Return the notes in a file.

    This is not a model of pydantic, which would take two milliseconds of each start.

    Raises:
        OSError: A time is out of the system's range.
        ValueError: The file is damaged.
    """
    try:
        return {name: _read_note(fields) for name, fields in json.loads(data).items()}
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError) as exc:
        raise ValueError("the notes about plugins are damaged") from exc


def _read_note(fields: Mapping[str, Any]) -> _Note:
    """Return the note with these fields; another version may have more of them, or fewer."""
    note = _Note(**{name: value for name, value in fields.items() if name in _Note._fields})
    note = note._replace(status=Status(note.status))
    datetime.fromtimestamp(note.since, UTC)  # raises an error for an impossible time
    types = [type(value) for value in note._replace(attempt=None)]
    if types != [type(value) for value in _Note("", "")]:
        raise TypeError("a field has another type")
    if note.step not in _STEPS or note.attempt not in (None, *_STEPS):
        raise ValueError("a step has an unknown name")
    return note


def _open_locked(file: Path) -> int:
    """Open a file and lock it; the system unlocks it if the process is killed.

    So an attempt that is read with the lock belongs to a process that has ended. To import
    `filelock` takes a hundredth of a start.

    Raises:
        OSError: Another process has locked the file, or it cannot be written.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), FILE_MODE)
    try:
        if sys.platform == "win32":
            # Others cannot read a locked byte, so it is one far behind the attempt.
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _may_crash(record: PluginRecord) -> bool:
    """Return True if a plugin is not one of the host's, and is about to be loaded or started."""
    return not record.info.is_own and record.status in (Status.DISCOVERED, Status.REGISTERED)


def _outcome(record: PluginRecord, earlier: _Note | None, step: Step) -> _Note:
    note = _note_of(record.info, earlier)
    # Most commands only load plugins; they must not overwrite the last start.
    if record.status is Status.REGISTERED and note.step == "starting":
        return note
    # It failed when it was loaded, so it was not started: the step stays.
    if record.status is Status.FAILED and note.reason == record.reason:
        step = note.step
    now = datetime.now(UTC).strftime(_TIME) if record.reason else ""
    return note._replace(status=record.status, reason=record.reason, step=step, time=now)


def _note_of(info: PluginInfo, note: _Note | None) -> _Note:
    """Return the note, or a new one if it is about another version or distribution."""
    if note and _matches(info, note):
        return note
    return _Note(distribution=info.distribution, version=info.version)


def _matches(info: PluginInfo, note: _Note) -> bool:
    return (note.distribution, note.version) == (info.distribution, info.version)
