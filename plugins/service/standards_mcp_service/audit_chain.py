"""Verify the audit log: the lines of each process are a chain of digests.

A line ends with the fields ``chain``, ``entry``, ``previous`` and ``digest``. The digest is the
SHA-256 of the line without this field. ``previous`` is the digest of the entry before it in the
chain; in the first entry, of the line that was the last one of the log at that time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_DIGEST: Final = re.compile(rb', "digest": "([0-9a-f]{64})"\}\Z')
_ENDED: Final = "service ended"
_REMEMBERED: Final = 1000
"""Digests to compare a new chain with: other processes write while one starts."""


@dataclass(slots=True)
class _Chain:
    """The state of one chain after a line.

    Attributes:
        entry: The number of its last entry.
        digest: The digest of its last entry.
        time: The time of its last entry.
        is_ended: True if the process has ended in the usual way.
    """

    entry: int
    digest: str
    time: str
    is_ended: bool


@dataclass(slots=True)
class Verdict:
    """The result of a verification.

    Attributes:
        entries: The number of intact entries.
        unchained: The number of lines of earlier versions, which have no chain.
        last: The digest of the last intact entry, or an empty string.
        problem: Where and why the log is broken, or an empty string.
        open_chains: The last entries of processes that have not written their end.
        begun: Descriptions of chains whose first entries are not in these files.
    """

    entries: int = 0
    unchained: int = 0
    last: str = ""
    problem: str = ""
    open_chains: list[str] = field(default_factory=list[str])
    begun: list[str] = field(default_factory=list[str])


def rotated(path: Path) -> list[Path]:
    """Return the files of a log, the oldest first: ``path.2``, ``path.1`` and *path*."""
    numbered = (
        (int(number), file)
        for file in path.parent.glob(f"{path.name}.*")
        if (number := file.name.removeprefix(f"{path.name}.")).isdecimal()
    )
    return [*(file for _, file in sorted(numbered, reverse=True)), path]


def verify(files: Sequence[Path], *, has_older: bool) -> Verdict:
    """Read the files of a log, the oldest first, up to the first broken line.

    Args:
        has_older: True if older files of the log may have been deleted, so that a chain may begin
            with any entry.

    Raises:
        OSError: A file cannot be read.
    """
    verifier = _Verifier(has_older=has_older)
    for place, line in _lines(files):
        if problem := verifier.add(place, line):
            verifier.verdict.problem = f"{place}: {problem}"
            break
    verifier.verdict.open_chains = [
        f"chain {name}: entry {chain.entry} at {chain.time}"
        for name, chain in verifier.chains.items()
        if not chain.is_ended
    ]
    return verifier.verdict


def verify_part(lines: Iterable[bytes]) -> str:
    """Return where lines in the middle of a log are broken, or "" if they follow each other."""
    verifier = _Verifier(has_older=True, is_part=True)
    for number, line in enumerate(lines, 1):
        if problem := verifier.add(str(number), line):
            return f"line {number} of these: {problem}"
    return ""


def _lines(files: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    with ExitStack() as stack:
        # All are opened first, because a service may rename them meanwhile.
        opened = [(path, stack.enter_context(path.open("rb"))) for path in files]
        for path, file in opened:
            for number, line in enumerate(file, 1):
                if line.strip():  # a line feed ends an incomplete line
                    yield f"{path}:{number}", line.removesuffix(b"\n")


class _Verifier:
    """Checks one line after the other.

    Args:
        has_older: See `verify`.
        is_part: True if the lines before the first one are not read.
    """

    def __init__(self, *, has_older: bool, is_part: bool = False) -> None:
        self.verdict = Verdict()
        self.chains: dict[str, _Chain] = {}
        self._has_older, self._is_part = has_older, is_part
        self._recent = deque[str](maxlen=_REMEMBERED)

    def add(self, place: str, line: bytes) -> str:
        """Return the problem of a line, or an empty string."""
        match = _DIGEST.search(line, len(line) - len(b', "digest": ""}') - 64)
        if match is None:
            return self._add_unchained()
        digest, data = match[1].decode(), line[: match.start()] + b"}"
        if hashlib.sha256(data).hexdigest() != digest:
            return "the line was changed"
        try:
            entry: dict[str, Any] = json.loads(data)
            name, number = str(entry["chain"]), int(entry["entry"])
            previous, time = str(entry["previous"]), str(entry["time"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return "the line is not an entry of the log"
        if problem := self._problem(place, name, number, previous):
            return problem
        self.chains[name] = _Chain(number, digest, time, entry.get("event") == _ENDED)
        self._recent.append(digest)
        self.verdict.entries += 1
        self.verdict.last = digest
        return ""

    def _add_unchained(self) -> str:
        if self.chains:
            return "the line has no digest: it was changed, added or is incomplete"
        self.verdict.unchained += 1
        return ""

    def _problem(self, place: str, name: str, number: int, previous: str) -> str:
        """Return the reason why an entry does not follow the lines before it, or ""."""
        chain = self.chains.get(name)
        if chain is None:
            return self._problem_of_first(place, name, number, previous)
        if number <= chain.entry:
            return f"entry {number} of chain {name} is repeated or in the wrong place"
        if number > chain.entry + 1:
            missing = f"{chain.entry + 1} to {number - 1}"
            return f"before this line, entries {missing} of chain {name} are missing"
        if previous != chain.digest:
            return f"before this line, entry {chain.entry} of chain {name} was replaced"
        return ""

    def _problem_of_first(self, place: str, name: str, number: int, previous: str) -> str:
        is_linked = number == 1 and (not previous or previous in self._recent)
        if is_linked or self._is_part:
            return ""
        problem = f"chain {name} begins with entry {number}, and the lines before it are missing"
        if not self._has_older or (number == 1 and self.chains):
            return problem
        self.verdict.begun.append(f"{place}: {problem}; it may be in a file that was deleted")
        return ""
