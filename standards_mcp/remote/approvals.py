"""Keep the approved definitions of a server in the state folder, and find changed ones."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from standards_mcp._utils.files import replace_privately
from standards_mcp._utils.private import FILE_MODE, private_folder
from standards_mcp._utils.text import describe_exception

from .pinning import Change, Definition, Key, digest, excerpt, how_to_approve, pinned, summary

log = logging.getLogger(__name__)

_LOCK_SECONDS: Final = 5.0
_MOST_SHOWN: Final = 4000
_Stamp: TypeAlias = tuple[int, int, int] | None


class _Approved(BaseModel):
    """An approved definition.

    Attributes:
        sha256: Its digest, so that a damaged file is noticed.
    """

    sha256: str
    definition: dict[str, Any]


class _Kept(BaseModel):
    """The content of the file: definitions by list and name."""

    approved: dict[str, dict[str, _Approved]]


class Approvals:
    """The approved definitions of one server.

    A file that cannot be read approves nothing. A file that cannot be written is no error at the
    first approval: what this process saw first then counts until it ends.

    Args:
        server: The server's name.
        file: The file of this server; it may not exist yet.

    Attributes:
        takes_first: If nothing was ever approved, the first definitions count as approved.
        changes: The definitions that the last `review` found not to be approved.
        excerpt: The beginning of the difference, for logs and pages.
        problem: Why the file cannot be read, or an empty string; then nothing is approved.
    """

    def __init__(self, server: str, file: Path) -> None:
        self.takes_first = True
        self.changes: list[Change] = []
        self.excerpt = ""
        self._server = server
        self._file = file
        self._approved: dict[Key, Definition] | None = None
        self.problem = ""
        self._stamp: _Stamp = None
        self._logged: list[tuple[Key, str]] = []

    @property
    def is_outdated(self) -> bool:
        """True if the file is not the one that was read last."""
        return _stamp(self._file) != self._stamp

    @property
    def reasons(self) -> dict[Key, str]:
        """Why definitions are not served, by their keys."""
        if self.problem:
            hint = how_to_approve(self._server)
            why = f"the approved definitions of its server cannot be read; {hint}"
            return {change.key: why for change in self.changes}
        return {change.key: change.reason(self._server) for change in self.changes}

    @property
    def message(self) -> str:
        """One line about the definitions that are not approved; empty if all are."""
        if not self.changes:
            return ""
        hint = how_to_approve(self._server)
        if self.problem:
            return f"its approved definitions cannot be read ({self.problem}); {hint}"
        return f"not served until approved: {summary(self.changes)}; {hint}"

    def review(self, listing: Mapping[str, Any]) -> None:
        """Set `changes` to the definitions of a listing that are not approved.

        Args:
            listing: Empty if the server has not listed anything yet.
        """
        if not listing:
            self.changes, self.excerpt = [], ""
            return
        self._refresh()
        found = pinned(listing)
        if self._approved is None and self.takes_first and not self.problem:
            self._take_first(found)
        approved = self._approved or {}
        self.changes = [
            Change(key, approved.get(key), definition)
            for key, definition in found.items()
            if key not in approved or digest(approved[key]) != digest(definition)
        ]
        self.excerpt = excerpt(self.changes, _MOST_SHOWN)
        self._log_changes()

    def approve(self, changes: Iterable[Change]) -> None:
        """Approve definitions in addition to the earlier ones.

        Removed definitions stay approved: they are served if they come back unchanged.

        Raises:
            OSError: The file cannot be written.
        """
        with self._locked():
            self._refresh()
            self._write((self._approved or {}) | {each.key: each.after for each in changes})

    def _take_first(self, found: dict[Key, Definition]) -> None:
        try:
            with self._locked():
                self._refresh()  # another process may have been first
                if self._approved is not None or self.problem:
                    return
                self._write(found)
        except OSError as exc:
            self._approved = found
            fields = {"plugin": self._server, "reason": describe_exception(exc)}
            log.warning(
                "the approved definitions of a server cannot be kept, so the next start approves "
                "what it finds; make the state folder writable",
                extra=fields,
            )
            return
        log.info(
            "the definitions of a server are approved at its first start",
            extra={"plugin": self._server, "definitions": len(found)},
        )

    def _refresh(self) -> None:
        """Read the file if it has changed; keep the known definitions if it is gone."""
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            text = self._file.read_bytes()
        except FileNotFoundError:
            return
        except OSError as exc:
            self._refuse_file(exc)
            return
        try:
            self._approved, self.problem = _definitions(text), ""
        except (ValueError, RecursionError) as exc:
            self._refuse_file(exc)

    def _refuse_file(self, cause: Exception) -> None:
        self._approved, self.problem = {}, describe_exception(cause)
        fields = {"plugin": self._server, "file": str(self._file), "reason": self.problem}
        message = "the approved definitions of a server cannot be read, so nothing of it is served"
        log.error(message, extra=fields)

    def _write(self, approved: dict[Key, Definition]) -> None:
        kept = _Kept(approved={})
        for (kind, name), definition in approved.items():
            entry = _Approved(sha256=digest(definition), definition=dict(definition))
            kept.approved.setdefault(kind, {})[name] = entry
        # Not by pydantic, which writes infinite numbers as null.
        replace_privately(self._file, json.dumps(kept.model_dump(), indent=1))
        self._approved, self.problem, self._stamp = approved, "", _stamp(self._file)

    @contextmanager
    def _locked(self) -> Generator[None]:
        import filelock  # noqa: PLC0415  - only where something is approved

        private_folder(self._file.parent)
        with filelock.FileLock(self._file.with_suffix(".lock"), _LOCK_SECONDS, FILE_MODE):
            yield

    def _log_changes(self) -> None:
        logged = [(change.key, digest(change.after)) for change in self.changes]
        if self.changes and logged != self._logged and not self.problem:
            log.warning(self.message, extra={"plugin": self._server, "diff": self.excerpt})
        self._logged = logged


def _definitions(text: bytes) -> dict[Key, Definition]:
    """Return the definitions in a file.

    Raises:
        ValueError: It is damaged.
    """
    found: dict[Key, Definition] = {}
    for kind, items in _Kept.model_validate(json.loads(text)).approved.items():
        for name, each in items.items():
            if digest(each.definition) != each.sha256:
                raise ValueError(f"the definition of {name!r} in {kind} does not have its sha256")
            found[kind, name] = each.definition
    return found


def _stamp(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0, 0, 0  # it may be there: to read it says why it cannot be read
    return status.st_mtime_ns, status.st_size, status.st_ino
