"""Run imports of the admin page: one at a time for each page, in a process of their own.

The state is in files, so that each worker of the service can show it. The worker that runs an
import holds a lock, which the system releases when the worker is killed:

<folder>/lock               held from the first byte of a file to the end of its import
<folder>/next/              receives the file of the next import
<folder>/run/job.json       the source, the caller and the time
<folder>/run/progress.json  written by the process of the import, as is result.json
<folder>/run/outcome.json   how the import ended
<folder>/run/cancel         asks the worker to end the import
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import filelock
from pydantic import BaseModel, TypeAdapter, ValidationError

from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import FILE_MODE, open_private, private_folder
from standards_mcp.transports import reason_of

from .actions import Actions, RefusedError
from .contributed import Importer, ImportResult
from .job_process import PROGRESS, RESULT, write_whole

_PROCESS: Final = ("-P", "-m", "standards_mcp_service.admin.job_process")
_POLL_SECONDS: Final = 0.25
_MAX_LINES: Final = 500
_MAX_CHARACTERS: Final = 1000
_MAX_RESULT_BYTES: Final = 16 * 2**20
_SERVICE_ENDED: Final = "The service ended while the import was running."
_RESULT: Final = TypeAdapter(ImportResult)
_OBJECT: Final = TypeAdapter(dict[str, Any])

_Outcome: TypeAlias = Literal["", "done", "failed", "cancelled", "interrupted"]


class State(BaseModel):
    """The state of the last import.

    Attributes:
        source: The name of the file, or the address.
        began: Seconds since 1970, as is *ended*, which is None while it runs.
        total: The number of items of this phase; 0 if it is not known.
        outcome: Empty while it runs.
        counts: See `ImportResult`, also for *lists*.
    """

    source: str
    caller: str
    began: float
    ended: float | None = None
    phase: str = "Starting"
    done: int = 0
    total: int = 0
    outcome: _Outcome = ""
    message: str = ""
    counts: dict[str, int] = {}
    lists: dict[str, list[str]] = {}

    @property
    def seconds(self) -> float:
        """The time that it has taken so far, or in all."""
        return max((self.ended or time.time()) - self.began, 0.0)


class Jobs:
    """The imports of one page.

    Args:
        folder: The folder of the state, which all workers share.
        page: The name of the page, for the logs.
    """

    def __init__(self, folder: Path, page: str, actions: Actions) -> None:
        self._folder, self._page, self._actions = folder, page, actions
        self._run, self._next = folder / "run", folder / "next"
        self._tasks = set[asyncio.Task[None]]()

    def state(self) -> State | None:
        """Return the state of the last import, or None without one.

        If its worker was killed, this is noted, and the file of the import is removed.
        """
        self._note_interruption()
        run = self._run
        data = _read(run / "job.json")
        outcome = _read(run / "outcome.json") or _read(run / PROGRESS)
        try:
            return State.model_validate({**data, **outcome}) if data else None
        except ValidationError:  # of another version
            return None

    def _note_interruption(self) -> None:
        job = _read(self._run / "job.json")
        is_running = bool(job) and not (self._run / "outcome.json").exists()
        if (is_running or self._next.exists()) and (lock := self._try_lock()):
            if is_running and not (self._run / "outcome.json").exists():
                self._finish(job, "interrupted", _SERVICE_ENDED)
            self.abandon(lock)

    def reserve(self) -> filelock.BaseFileLock:
        """Take the lock for the next import, and make an empty `upload_folder`.

        Raises:
            RefusedError: Another import is running, or the state cannot be written.
        """
        self.state()
        try:
            private_folder(self._folder)
            lock = self._try_lock()
            if lock is not None:
                self._make_upload_folder(lock)
        except OSError as exc:
            why = f"The folder {self._folder} cannot be written: {reason_of(exc)}."
            raise RefusedError(f"Nothing is imported. {why}") from None
        if lock is None:
            raise RefusedError(
                "The file of another import is arriving; try again in a few minutes."
                if self._next.exists()
                else "Another import is running. Wait until it ends, or cancel it."
            )
        return lock

    def _make_upload_folder(self, lock: filelock.BaseFileLock) -> None:
        try:
            private_folder(self.upload_folder)
        except OSError:
            lock.release()
            raise

    def abandon(self, lock: filelock.BaseFileLock) -> None:
        """Remove the file of an import that was not started, and release the lock."""
        shutil.rmtree(self._next, ignore_errors=True)
        lock.release()

    @property
    def upload_folder(self) -> Path:
        """The folder for the file of the next import; it exists after `reserve`."""
        return self._next / "upload"

    def _try_lock(self) -> filelock.BaseFileLock | None:
        """Take the lock, or return None if an import is running."""
        lock = filelock.FileLock(self._folder / "lock", 0, FILE_MODE, thread_local=False)
        with suppress(OSError):  # it is held, or the folder is read-only
            return lock.acquire().lock
        return None

    async def start(
        self,
        lock: filelock.BaseFileLock,
        importer: Importer,
        source: Path | str,
        values: Mapping[str, str],
        caller: str,
    ) -> None:
        """Start an import; its end releases the lock.

        Args:
            source: A file in `upload_folder`, or an address.

        Raises:
            RefusedError: A value is wrong, the audit log cannot be written, or the process cannot
                be started. The caller releases the lock then.
        """
        name = source.name if isinstance(source, Path) else source
        path = str(self._run / "upload" / name) if isinstance(source, Path) else source
        try:
            arguments = importer.arguments(path, values)
        except StandardsMcpError as exc:
            raise RefusedError(f"Nothing is imported. {exc}") from None
        job = {"source": name, "caller": caller, "began": time.time()}
        fields = {"page": self._page, "source": name, "caller": caller, "values": dict(values)}
        self._actions.announce("import is about to begin", fields)
        try:
            write_whole(self._next / "job.json", job)
            shutil.rmtree(self._run, ignore_errors=True)
            self._next.rename(self._run)
            with open_private(self._run / "stderr") as errors:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, *_PROCESS),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,  # Ctrl-C is for the service
                )
        except OSError as exc:
            shutil.rmtree(self._run, ignore_errors=True)
            raise RefusedError(f"The import cannot be started: {reason_of(exc)}.") from None
        self._actions.note("import began", fields)
        order = {"folder": str(self._run), "function": importer.function, "arguments": arguments}
        task = asyncio.create_task(self._watch(process, order, job, lock))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(
        self,
        process: asyncio.subprocess.Process,
        order: Mapping[str, Any],
        job: Mapping[str, Any],
        lock: filelock.BaseFileLock,
    ) -> None:
        """Wait for the end of an import, and save its outcome."""
        outcome: _Outcome = "interrupted"
        message = _SERVICE_ENDED
        try:
            outcome, message = await self._outcome(process, order)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            self._finish(job, outcome, message)
            lock.release()

    async def _outcome(
        self, process: asyncio.subprocess.Process, order: Mapping[str, Any]
    ) -> tuple[_Outcome, str]:
        assert process.stdin  # noqa: S101  - it is a pipe, which stays open until the end
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        while process.returncode is None:
            if (self._run / "cancel").exists():
                return "cancelled", "The import was cancelled."
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), _POLL_SECONDS)
        return "done", f"The process of the import ended with code {process.returncode}."

    def _finish(self, job: Mapping[str, Any], outcome: _Outcome, message: str) -> None:
        """Save and note the outcome of an import, and remove its file; the caller has the lock."""
        counts, lists = dict[str, int](), dict[str, list[str]]()
        if outcome == "done":
            try:
                result = _read_result(self._run / RESULT)
            except (OSError, ValueError):  # it was killed, or crashed in native code
                outcome, lists = (
                    "failed",
                    {"Last lines of its process": _last_lines(self._run / "stderr")},
                )
            else:
                outcome, message = "failed" if result.is_error else "done", result.message
                counts, lists = dict(result.counts), _bounded(result)
        saved = {
            "outcome": outcome,
            "message": message,
            "ended": time.time(),
            "counts": counts,
            "lists": lists,
        }
        shutil.rmtree(self._run / "upload", ignore_errors=True)
        with suppress(OSError):  # a full disk; the next look finds an interrupted import
            write_whole(self._run / "outcome.json", saved)
        fields = {"page": self._page, "source": job.get("source"), "caller": job.get("caller")}
        self._actions.note("import ended", {**fields, "outcome": outcome, "counts": counts})

    def cancel(self, began: str, caller: str) -> None:
        """Ask the worker that runs an import to end it.

        Args:
            began: The `State.began` that the page has shown.

        Raises:
            RefusedError: This import is not running, or the audit log cannot be written.
        """
        state = self.state()
        if state is None or state.outcome or str(state.began) != began:
            raise RefusedError("This import is not running any more.")
        fields = {"page": self._page, "source": state.source, "caller": caller}
        self._actions.announce("import is about to be cancelled", fields)
        with suppress(OSError):
            (self._run / "cancel").touch()
        self._actions.note("import is being cancelled", fields)

    async def aclose(self) -> None:
        """End the import that this worker runs."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _read(file: Path) -> dict[str, Any]:
    """Return the object in a file of the state, or {} if there is none."""
    with suppress(OSError, ValueError):
        return _OBJECT.validate_json(file.read_bytes())
    return {}


def _read_result(file: Path) -> ImportResult:
    """Return the result that the process of an import has written.

    Raises:
        OSError: There is none.
        ValueError: It is not a result, or too long.
    """
    if file.stat().st_size > _MAX_RESULT_BYTES:
        raise ValueError("the result is too long")
    return _RESULT.validate_json(file.read_bytes())


def _last_lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_bytes()[-_MAX_CHARACTERS:].decode(errors="replace").splitlines()
    return []


def _bounded(result: ImportResult) -> dict[str, list[str]]:
    bounded = dict[str, list[str]]()
    for heading, lines in result.lists.items():
        bounded[heading] = [line[:_MAX_CHARACTERS] for line in lines[:_MAX_LINES]]
        if len(lines) > _MAX_LINES:
            bounded[heading].append(f"... and {len(lines) - _MAX_LINES:,} more")
    return bounded
