"""The journal of a restore, so that a restore that did not end is reported and completed."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from pydantic import BaseModel, ValidationError

from standards_mcp.commands import Finding
from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import replace_privately

_NAME: Final = "restore.json"


class _Host(Protocol):
    @property
    def state_dir(self) -> Path: ...


class _Invocation(Protocol):
    @property
    def host(self) -> _Host: ...


class Journal(BaseModel):
    """What a restore has replaced so far. It is removed when all is.

    Attributes:
        archive: The archive that is restored.
        done: The names of the parts that are restored.
        left: The names of those that are not; the first one may be.
    """

    archive: str
    done: list[str] = []
    left: list[str]

    def save(self, state_dir: Path) -> None:
        """Write the journal: first before any part is replaced."""
        replace_privately(state_dir / _NAME, self.model_dump_json().encode())

    def advance(self, state_dir: Path) -> None:
        """Note that one part more is restored."""
        self.done.append(self.left.pop(0))
        self.save(state_dir)


def end_journal(state_dir: Path) -> None:
    """Remove the journal, since nothing is left."""
    (state_dir / _NAME).unlink(missing_ok=True)


def unfinished(state_dir: Path) -> list[str]:
    """Return a note for people if the last restore did not end, else nothing."""
    try:
        journal = Journal.model_validate_json((state_dir / _NAME).read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        return [f"An earlier restore did not end, and {state_dir / _NAME} cannot be read: {error}"]
    if not journal.left:  # only the last clean-up is missing
        return []
    done, left = ", ".join(journal.done) or "nothing", ", ".join(journal.left)
    note = (
        f"The restore of {journal.archive} did not end. Restored: {done}. Perhaps not restored: "
        f"{left}. `{restore_command(journal.archive)}` completes it"
    )
    return [note]


def restore_command(archive: Path | str) -> str:
    """Return the shell command that restores an archive."""
    words = ("standards-mcp", "restore", str(archive))
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def check_restore(invocation: _Invocation, server: object) -> Iterator[Finding]:
    """Find a restore that did not end, for ``standards-mcp doctor``."""
    del server
    try:
        state_dir = invocation.host.state_dir
    except StandardsMcpError:  # the configuration is invalid, which is a finding of its own
        return
    for note in unfinished(state_dir):
        yield Finding("restore", "error", note)
