"""Pin the definitions of other servers: keep the approved ones, and withhold changed ones."""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from standards_mcp._utils.text import describe_exception
from standards_mcp.files import (
    FILE_MODE,
    FileStamp,
    file_stamp,
    private_folder,
    replace_privately,
)

log = logging.getLogger(__name__)

Definition: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]
"""The protocol's name of a list, such as ``tools``, and the server's own name of an item in it."""

# The first field of each kind names the item. All fields are read by models or by the host's rules.
# Icons and `_meta` are not pinned, because they change with addresses and versions.
_PINNED: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
    "prompts": ("name", "title", "description", "arguments"),
    "resourceTemplates": ("uriTemplate", "name", "title", "description", "mimeType"),
    "skills": ("uri", "frontmatter", "resources"),
}
_NOUNS: Final = {
    "tools": "tool",
    "prompts": "prompt",
    "resourceTemplates": "resource template",
    "skills": "skill",
}
# Invisible selectors can carry a text that only a model reads.
_VARIATION_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_WIDTH: Final = 100
_MAX_DIFF_LINES: Final = 400
"""The most lines that difflib compares: hostile megabytes would take minutes."""
_EXCERPT_CHARACTERS: Final = 4000
_SUMMARY_TITLES: Final = 5
_LONGEST_NAME: Final = 64
_LOCK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Change:
    """A definition that is not approved.

    Attributes:
        before: The approved definition; None for a new item.
    """

    key: Key
    before: Definition | None
    after: Definition

    @property
    def title(self) -> str:
        """A text such as ``tool 'search' changed``."""
        kind, name = self.key
        shown = _visible(name)[:_LONGEST_NAME]
        return f"{_NOUNS[kind]} {shown!r} {'is new' if self.before is None else 'changed'}"

    @property
    def digest(self) -> str:
        """The SHA-256 of the change, to approve exactly the version that was shown."""
        return digest({"key": self.key, "before": self.before, "after": self.after})

    @property
    def reason(self) -> str:
        """Why the item is not served."""
        how = "it is new" if self.before is None else "its definition changed"
        return f"{how} since the server was approved"

    def lines(self, max_characters: int | None = None) -> Iterator[str]:
        """Yield the title and the diff; a diff line begins with a space, ``+`` or ``-``.

        Args:
            max_characters: The number of characters to compare of each definition; by default all.
        """
        yield self.title
        before = [] if self.before is None else _lines(self.before, max_characters)
        after = _lines(self.after, max_characters)
        if len(before) + len(after) > _MAX_DIFF_LINES:
            yield from (f"-{line}" for line in before)
            yield from (f"+{line}" for line in after)
            return
        lines = difflib.unified_diff(before, after, n=1, lineterm="")
        yield from (line for line in islice(lines, 2, None) if not line.startswith("@@"))


def key_of(kind: str, raw: Mapping[str, Any]) -> Key:
    """Return the key of an item in a server's list."""
    return kind, str(raw.get(_PINNED[kind][0]) or "")


def pinned(listing: Mapping[str, Any]) -> dict[Key, Definition]:
    """Return the definitions in a listing that need approval.

    Of definitions with the same key, only the first counts, because the host serves no other.
    """
    definitions: dict[Key, Definition] = {}
    for kind, fields in _PINNED.items():
        for raw in listing.get(kind, ()):
            definition = {name: raw[name] for name in fields if raw.get(name) is not None}
            definitions.setdefault(key_of(kind, raw), definition)
    return definitions


def digest(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of definitions; the order of keys does not count."""
    # JSON texts are compared, because in Python `True` equals 1.
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def difference(changes: Iterable[Change], max_characters: int | None = None) -> str:
    """Return the titles and diffs of all changes; invisible characters are escaped.

    Args:
        max_characters: Stop after the line that exceeds this number of characters, and compare no
            more characters of each definition.
    """
    shown = ""
    for line in (line for change in changes for line in change.lines(max_characters)):
        if max_characters is not None and len(shown) > max_characters:
            return f"{shown}... and more"
        shown += f"{line}\n"
    return shown.removesuffix("\n")


def summary(changes: list[Change]) -> str:
    """Return the titles of the first changes, and the number of the others, in one line."""
    named = ", ".join(change.title for change in changes[:_SUMMARY_TITLES])
    more = len(changes) - _SUMMARY_TITLES
    return f"{named} and {more} more" if more > 0 else named


def _lines(definition: Definition, max_characters: int | None) -> list[str]:
    text = json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True)
    if max_characters is not None and len(text) > max_characters:
        text = f"{text[:max_characters]}\n... {len(text) - max_characters:,} more characters"
    # `splitlines` would also break lines at separators within a text of the server.
    shown = (_visible(line) for line in text.split("\n"))
    return [line[at : at + _WIDTH] for line in shown for at in range(0, len(line), _WIDTH)]


def _visible(text: str) -> str:
    r"""Return *text* with every invisible character as ``\u200b``, bidi marks included."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escaped(char) for char in text)
    return _VARIATION_SELECTORS.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"


class _File(BaseModel):
    """The content of the file.

    Attributes:
        sha256: The digest of *approved*, to detect damage of the file.
        approved: The definitions by list and name.
    """

    sha256: str
    approved: dict[str, dict[str, Definition]]


class Approvals:
    """The approved definitions of one server, in a file of the state folder.

    If the file cannot be read, nothing is approved. If it cannot be written at the first approval,
    the first definitions count as approved until the process ends.

    Args:
        server: The server's name.
        file: The file of this server; it may not exist yet.

    Attributes:
        takes_first: True to approve the first definitions if nothing was approved before.
        changes: The unapproved definitions of the last `review`.
        excerpt: The beginning of the difference, for logs and pages.
        problem: Why the file cannot be read, or an empty string.
    """

    def __init__(self, server: str, file: Path) -> None:
        self.takes_first = True
        self.changes: list[Change] = []
        self.excerpt = ""
        self.problem = ""
        self._server = server
        self._file = file
        self._remedy = f"`standards-mcp servers approve {server}` shows the difference and asks"
        self._approved: dict[Key, Definition] | None = None
        self._stamp: FileStamp = None
        self._logged: list[tuple[Key, str]] = []

    @property
    def is_outdated(self) -> bool:
        """True if the file has changed since it was read."""
        return file_stamp(self._file) != self._stamp

    @property
    def reasons(self) -> dict[Key, str]:
        """The reasons why definitions are not served, by key, without any text of the server."""
        unreadable = "the approved definitions of its server cannot be read"
        return {
            change.key: f"{unreadable if self.problem else change.reason}; {self._remedy}"
            for change in self.changes
        }

    @property
    def message(self) -> str:
        """One line about the unapproved definitions, or an empty string."""
        if not self.changes:
            return ""
        if self.problem:
            return f"its approved definitions cannot be read ({self.problem}); {self._remedy}"
        return f"not served until approved: {summary(self.changes)}; {self._remedy}"

    def review(self, listing: Mapping[str, Any]) -> None:
        """Set `changes` to the unapproved definitions in a listing.

        Args:
            listing: Empty if the server has not listed anything yet.
        """
        if not listing:
            self.changes, self.excerpt = [], ""
            return
        self._reload_if_changed()
        definitions = pinned(listing)
        if self._approved is None and self.takes_first and not self.problem:
            self._approve_first(definitions)
        approved = self._approved or {}
        self.changes = [
            Change(key, approved.get(key), definition)
            for key, definition in definitions.items()
            if key not in approved or digest(approved[key]) != digest(definition)
        ]
        self.excerpt = difference(self.changes, _EXCERPT_CHARACTERS)
        digests = [(change.key, digest(change.after)) for change in self.changes]
        if self.changes and digests != self._logged and not self.problem:
            log.warning(self.message, extra={"plugin": self._server, "diff": self.excerpt})
        self._logged = digests

    def approve(self, changes: Iterable[Change]) -> None:
        """Approve these definitions, in addition to earlier ones.

        Definitions that the server has removed stay approved, in case they come back unchanged.

        Raises:
            OSError: The file cannot be written.
        """
        with self._locked():
            self._reload_if_changed()
            self._write((self._approved or {}) | {change.key: change.after for change in changes})

    def _approve_first(self, definitions: dict[Key, Definition]) -> None:
        try:
            with self._locked():
                self._reload_if_changed()  # another process may have been first
                if self._approved is not None or self.problem:
                    return
                self._write(definitions)
        except OSError as exc:
            self._approved = definitions
            fields = {"plugin": self._server, "reason": describe_exception(exc)}
            log.warning(
                "the approved definitions of a server cannot be kept, so the next start approves "
                "what it finds; make the state folder writable",
                extra=fields,
            )
            return
        log.info(
            "the definitions of a server are approved at its first start",
            extra={"plugin": self._server, "definitions": len(definitions)},
        )

    def _reload_if_changed(self) -> None:
        """Read the file if it has changed; keep the last definitions if it was deleted."""
        stamp = file_stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            content = _File.model_validate(json.loads(self._file.read_bytes()))
            if digest(content.approved) != content.sha256:
                raise ValueError("its content does not have its sha256")  # noqa: TRY301
            lists, self.problem = content.approved, ""
            self._approved = {
                (kind, name): lists[kind][name] for kind in lists for name in lists[kind]
            }
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as exc:
            self._approved, self.problem = {}, describe_exception(exc)
            fields = {"plugin": self._server, "file": str(self._file), "reason": self.problem}
            log.error(  # noqa: TRY400  - the reason is enough
                "the approved definitions of a server cannot be read, so nothing of it is served",
                extra=fields,
            )

    def _write(self, approved: dict[Key, Definition]) -> None:
        lists: dict[str, dict[str, Definition]] = {}
        for (kind, name), definition in approved.items():
            lists.setdefault(kind, {})[name] = definition
        # Pydantic would write infinite numbers as null.
        text = json.dumps({"sha256": digest(lists), "approved": lists}, indent=1)
        replace_privately(self._file, text)
        self._approved, self.problem, self._stamp = approved, "", file_stamp(self._file)

    @contextmanager
    def _locked(self) -> Generator[None]:
        import filelock  # noqa: PLC0415  - only for an approval

        private_folder(self._file.parent)
        with filelock.FileLock(self._file.with_suffix(".lock"), _LOCK_SECONDS, FILE_MODE):
            yield
