"""Child processes: their environment, their output, their end, and the processes they start.

A child leads a process group and a session, and most processes that it starts stay there. On Linux,
a process that leaves, such as a daemon, is recognised by a mark in its initial environment: it
inherits the mark, and cannot change it there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio

from standards_mcp._utils.logs import STANDARD_FIELDS

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 2.0
"""Time for a process to end after its stdin is closed, and again after SIGTERM."""
_POLL_SECONDS: Final = 0.02
# The underscore distinguishes this variable from the host's settings. The mark is needed, because a
# parent of orphans (`PR_SET_CHILD_SUBREAPER`) cannot tell which plugin started them. MCP servers
# get no mark, because some start a daemon on purpose.
_MARK_VARIABLE: Final = "_STANDARDS_MCP_RUN"
_MAX_KILL_ROUNDS: Final = 20
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
_STATE_FIELD: Final = 0
_SESSION_FIELD: Final = 3

_Process: TypeAlias = "asyncio.subprocess.Process | subprocess.Popen[bytes]"

# An allow-list, because no deny-list has the names of all secrets.
_ALLOWED_NAMES: Final = frozenset({
    *("HOME", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "USER", "VIRTUAL_ENV"),
    *("LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "NO_COLOR", "FORCE_COLOR"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS"),
    *("PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR"),
    # Pydantic's switch for plugins, the control plane of the catalog, and coverage.py.
    *("PYDANTIC_DISABLE_PLUGINS", "PINECONE_CONTROLLER_HOST"),
    *("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"),
})  # fmt: skip
_ALLOWED_PATTERN: Final = re.compile("LC_[A-Z]+|PYTHON[A-Z]+|XDG_[A-Z_]+")

_MANAGER_LOGGER: Final = "standards_mcp.loading.manager"
MAX_TEXT: Final = 2000
"""The most characters of a logged line."""
MAX_LINES: Final = 200
"""The most lines logged in `SPAN_SECONDS`; further lines are only counted."""
SPAN_SECONDS: Final = 10.0
_CHUNK: Final = 1 << 16
_LAST_LINES: Final = 5
_HOST_RECORD: Final = re.compile(r'\{"time": "[^"]+", "level": "\w+", "logger": "standards_mcp\b')


def basic_environment() -> dict[str, str]:
    """Return the environment variables that every program may need."""
    return {
        name: value
        for name, value in os.environ.items()
        if (upper := name.upper()) in _ALLOWED_NAMES or _ALLOWED_PATTERN.fullmatch(upper)
    }


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Close the stdin of a process, then terminate it, then kill its process group.

    The group is killed in any case, because its other processes may outlive the given one.
    """
    if process.stdin:
        process.stdin.close()
    if not await _has_ended(process):
        _signal_tree(process, signal.SIGTERM)
        await _has_ended(process)
    kill_tree(process)
    await _has_ended(process)


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    # `wait` would also wait for every process that inherited its pipes.
    with anyio.move_on_after(GRACE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110  - instead of `wait`
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None


def kill_tree(process: _Process) -> None:
    """Kill a process and its process group."""
    _signal_tree(process, _KILL)


def _signal_tree(process: _Process, signal_number: int) -> None:
    """Signal a process group; it may still exist after its first process has ended."""
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_number)
    elif process.returncode is None:
        tree = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        subprocess.run(tree, capture_output=True, check=False)  # noqa: S603


def describe_code(code: int | None) -> str:
    """Return how a process ended, by Python's exit code."""
    if code is None:
        return "it does not end"
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


def release(process: asyncio.subprocess.Process) -> None:
    """Close our ends of the pipes; a process that left the group may hold the other ends."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def new_mark() -> dict[str, str]:
    """Return a unique variable for the environment of a new process."""
    return {_MARK_VARIABLE: secrets.token_hex(16)}


def processes_of(session: int, mark: Mapping[str, str]) -> set[int]:
    """Return the ids of the processes in a session or with a mark; none without ``/proc``."""
    return {
        pid
        for pid, its_session in _all_processes()
        if its_session == b"%d" % session or _has_mark(pid, mark)
    }


def end_departed(session: int, mark: Mapping[str, str]) -> list[int]:
    """Kill the processes with a mark that have left a session; return their ids."""
    ended = set[int]()
    for _ in range(_MAX_KILL_ROUNDS if mark else 0):  # a process may start another meanwhile
        outside = [pid for pid, its_session in _all_processes() if its_session != b"%d" % session]
        marked = {pid for pid in outside if _has_mark(pid, mark)} - ended
        if not marked:
            break
        for pid in marked:
            with suppress(OSError):
                os.kill(pid, _KILL)
        ended |= marked
    return sorted(ended)


def newest_process() -> bytes:
    """Return the id of the newest process; empty on systems without ``/proc``."""
    with suppress(OSError):
        return Path("/proc/loadavg").read_bytes().split()[-1]
    return b""


def _all_processes() -> Iterator[tuple[int, bytes]]:
    """Yield the ids and the sessions of all processes that are not zombies."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of the program, in parentheses, may contain any character.
            fields = file.read_bytes().rpartition(b")")[2].split()
            if fields[_STATE_FIELD] != b"Z":
                yield int(file.parent.name), fields[_SESSION_FIELD]


def _has_mark(pid: int, mark: Mapping[str, str]) -> bool:
    if not mark:
        return False
    with suppress(OSError):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return all(f"{name}={value}".encode() in variables for name, value in mark.items())
    return False


class OutputLog:
    """Logs the output of one program.

    Args:
        name: The plugin's name in the records.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._since = 0.0
        self._count = 0
        self._dropped = 0
        self.last_line = ""

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        """Log every line until the end of *stream*."""
        rest_of_line = b""
        while stream and (data := await stream.read(_CHUNK)):
            *lines, rest_of_line = (rest_of_line + data).split(b"\n")
            # If there are too many lines, only the last ones are logged, to save time.
            taken = lines if self._count < MAX_LINES else lines[-_LAST_LINES:]
            self._dropped += len(lines) - len(taken)
            for line in taken:
                self._log_line(line)
            rest_of_line = rest_of_line[: 4 * MAX_TEXT]
            await asyncio.sleep(0)  # because a read of available data does not yield to the loop
        self._log_line(rest_of_line)
        self._log_dropped()

    def note(self, text: str) -> None:
        """Log a warning about the output."""
        self._log(logging.WARNING, "output", {"text": text})

    def _log_line(self, line: bytes) -> None:
        # Terminal control characters would have an effect when the log is shown.
        text = line[: 4 * MAX_TEXT].decode(errors="replace").strip()
        text = "".join(char if char.isprintable() else " " for char in text[:MAX_TEXT])
        if text.strip():
            if record := _host_record(line, text):
                self._log(record.pop("level"), record.pop("event"), record)
            else:
                self.last_line = text
                self._log(logging.INFO, "output", {"text": text})

    def _log(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now - self._since > SPAN_SECONDS:
            self._log_dropped()
            self._since, self._count = now, 0
        self._count += 1
        if self._count > MAX_LINES:
            self._dropped += 1
            return
        log.log(level, event, extra={**fields, "plugin": self._name})

    def _log_dropped(self) -> None:
        if self._dropped:
            fields = {"plugin": self._name, "lines": self._dropped}
            log.warning("output was dropped: it was too much", extra=fields)
            self._dropped = 0


def _host_record(line: bytes, text: str) -> dict[str, Any] | None:
    """Parse a log record of the host code in an isolated plugin's process; None for other lines.

    Such records are about calls, so they do not count as the last words of the process.
    """
    if not _HOST_RECORD.match(text):
        return None
    try:
        record: dict[str, Any] = json.loads(line)
        level = logging.getLevelNamesMapping()[record.pop("level").upper()]
        if record.get("logger") == _MANAGER_LOGGER:
            level = logging.DEBUG  # this host logs the reason itself
        event = str(record.pop("event"))
    except (ValueError, KeyError, AttributeError, RecursionError):
        return None
    rest = STANDARD_FIELDS | {"time", "logger"}
    fields = {key: value for key, value in record.items() if key not in rest}
    return {**fields, "level": level, "event": event}
