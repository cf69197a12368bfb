"""One start of the program.

It has the arguments, and the environment and import path at its start, before plugins can change
them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from standards_mcp._utils.lines import DescriptorLines
from standards_mcp._utils.places import user_state_folder
from standards_mcp._utils.streams import claim_standard_streams, fill_closed_streams

from .fingerprint import fingerprint, installed_packages, installed_version, keyed_digest
from .front import Front, PlainStreams, Streams, is_complete
from .snapshot import Snapshot, SnapshotError, Store

COMMANDS_KEY: Final = "commands"
"""The key of the commands in a snapshot."""
TOOLS_KEY: Final = "tools"
"""The key of the plugins behind each tool in a snapshot."""

_STATE_VARIABLE: Final = "STANDARDS_MCP_STATE_DIR"
_CONFIGURATION_OPTIONS: Final = ("--config", "--set", "--profile")
_STDIO_ARGUMENTS: Final = ("", "--transport stdio", "--transport=stdio")


class Launch:
    """A start of the program, with its environment and import path before plugins can change them.

    Args:
        arguments: The arguments of the command line.

    Attributes:
        began: `time.perf_counter` at the start.
        options: The options before the command that choose the configuration, with their values.
        front: Answers the client from a snapshot, or None.
        keeps_snapshots: True if this process serves a client over stdio.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.began = time.perf_counter()
        self._began_at = time.time_ns()
        self.environment: Mapping[str, str] = dict(os.environ)
        self.path = list(sys.path)
        self._folder = _working_folder()
        self.options, rest = _split_arguments(arguments)
        others = [argument for argument in rest[1:] if argument != "--watch"]
        is_serve = rest[:1] in ([], ["serve"])
        self.serves_stdio = is_serve and " ".join(others) in _STDIO_ARGUMENTS
        # The configured `state_dir` is ignored here: snapshots are used before the configuration
        # is read.
        state = self.environment.get(_STATE_VARIABLE, "").strip()
        self.store = Store(f"{state or user_state_folder(self.environment)}/starts")
        self.front: Front | None = None
        self.keeps_snapshots = False
        self._why_no_front = ""

    @cached_property
    def packages(self) -> list[object] | None:
        """The stamps of the installed packages at the start; see `installed_packages`."""
        return installed_packages(self.path)

    def fingerprint(
        self, salt: bytes, variables: Collection[str], files: Iterable[str]
    ) -> dict[str, str]:
        """Return the fingerprint of this start; see `fingerprint`."""
        return fingerprint(
            salt,
            path=self.path,
            packages=self.packages,
            environment=self.environment,
            variables=variables,
            files=files,
        )

    def snapshot_name(self, salt: bytes) -> str:
        """Return the name of the snapshot for this environment, folder and these options."""
        return f"{keyed_digest(salt, (sys.prefix, self._folder, self.options))}.snapshot"

    def valid_snapshot(self) -> Snapshot:
        """Return the snapshot of the last start, if it is valid for this one.

        Raises:
            SnapshotError: There is none, or something has changed since.
        """
        if isinstance(self._snapshot, SnapshotError):
            raise self._snapshot
        return self._snapshot

    # One command asks for its help, its plugin and the plugins of its tool.
    @cached_property
    def _snapshot(self) -> Snapshot | SnapshotError:
        """The snapshot of the last start, or the reason why it is not valid."""
        salt = self.store.salt()
        if not salt:
            return SnapshotError("there was no snapshot")
        try:
            snapshot = self.store.read(self.snapshot_name(salt))
        except SnapshotError as exc:
            return exc
        if self.packages is None:
            return SnapshotError("the code of an editable plugin was not found")
        current = self.fingerprint(salt, snapshot.variables, snapshot.files)
        changed = [
            name for name, value in current.items() if snapshot.fingerprint.get(name) != value
        ]
        if changed:
            return SnapshotError(f"since the last start, {' and '.join(changed)} changed")
        return snapshot

    @property
    def version(self) -> str:
        """The version of the host, or "" if its metadata are not found."""
        return installed_version("standards_mcp", self.path)

    def answer_client(self) -> None:
        """Answer the client over stdio from a valid snapshot, if the command serves it."""
        if not self.serves_stdio or sys.stdin is None or sys.stdout is None:
            return
        self.keeps_snapshots = True
        _ = self.packages  # read now: imports take long, and packages may change meanwhile
        fill_closed_streams()
        try:
            snapshot = self.valid_snapshot()
        except SnapshotError as exc:
            self._why_no_front = str(exc)
            return
        if not is_complete(snapshot):
            self._why_no_front = "no server has stored its lists yet"
            return
        reader, writer = claim_standard_streams()
        self.front = Front(snapshot, DescriptorLines(reader), writer)

    @property
    def note(self) -> str:
        """Why the client was not answered from a snapshot, or "" if it was."""
        if self.front and not self.front.answered:
            return "the client began with a request that only the server answers"
        return self._why_no_front

    def take_streams(self) -> Streams:
        """Return the client's end of stdio; claim it, unless the front has done so."""
        return self.front or PlainStreams(*claim_standard_streams())

    def commands(self) -> dict[str, tuple[str, str]] | None:
        """Return the plugin and the help of each command, or None without a valid snapshot.

        The plugin is "" for a command of the host.
        """
        with suppress(ValueError, TypeError):
            if (commands := self._stored_table(COMMANDS_KEY)) is not None:
                return {name: (plugin, text) for name, (plugin, text) in commands.items()}
        return None

    def plugins_behind(self, tool: str) -> list[str] | None:
        """Return the plugins that a call of a tool needs, or None if they are not known."""
        return (self._stored_table(TOOLS_KEY) or {}).get(tool)

    def _stored_table(self, key: str) -> dict[str, Any] | None:
        with suppress(SnapshotError, KeyError, ValueError):
            table: dict[str, Any] = json.loads(self.valid_snapshot().results[key])
            return table
        return None

    def last_note(self) -> str | None:
        """Return why the last start over stdio was not answered from a snapshot.

        The note is "" if it was, and None if nothing is known about it, as in a snapshot that only
        commands have written.
        """
        with suppress(SnapshotError):
            if salt := self.store.salt():
                snapshot = self.store.read(self.snapshot_name(salt))
                return snapshot.note if is_complete(snapshot) else None
        return None

    def remove_snapshot(self) -> None:
        """Remove the snapshot, if there is one."""
        if salt := self.store.salt():
            self.store.remove(self.snapshot_name(salt))

    def files_unchanged(self, files: Sequence[str]) -> bool:
        """True if none of these files has changed since the start; a missing file is unchanged."""
        for file in files:
            with suppress(OSError):
                if os.stat(file).st_mtime_ns >= self._began_at:
                    return False
        return True


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _split_arguments(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the options that choose the configuration with their values, and the other arguments.

    The other arguments begin with the command, or with an option such as ``--help``; options for
    the verbosity are dropped.
    """
    options, rest = list[tuple[str, str]](), list(arguments)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest[0].partition("=")
        if name in _CONFIGURATION_OPTIONS and (equals or len(rest) > 1):
            options.append((name, value if equals else rest.pop(1)))
        elif rest[0] != "--verbose" and set(rest[0][1:]) != {"v"}:
            break
        rest.pop(0)
    return options, rest
