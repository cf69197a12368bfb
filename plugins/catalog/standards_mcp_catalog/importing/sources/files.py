"""Find the documents in files, folders, archives and addresses.

Nothing is unpacked to disk, so names inside archives cannot lead anywhere. Unpacked bytes are
counted, so no archive can fill the memory or take for ever.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from typing_extensions import Buffer

from standards_mcp_catalog.importing.report import Problem, SourceError, lost, note

from .archives import (
    MOST_FILES,
    UNREADABLE,
    Member,
    is_gzip,
    is_tar,
    is_zip,
    tar_members,
    zip_members,
)

if TYPE_CHECKING:
    from .web import Web

LARGEST_SOURCE: Final = 4 * 2**30
"""How many bytes one file or address may unpack to, with all documents in it."""
# Sizes that an archive declares may be wrong, so the unpacked bytes are counted. Real data reaches
# a tenth of this.
MOST_TIMES: Final = 200
"""How many times its own size it may unpack to; `_SMALL` bytes are always allowed."""
_SMALL: Final = 64 * 2**20
_READABLE: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".tab")
_PACKED: Final = (".gz", ".tgz", ".tar", ".zip")
_PEEK: Final = 65_536
_LINK_OUTSIDE: Final = "link that leaves the folder"
_LINK_ADVICE: Final = "import its target by its own path"
_DEEPEST: Final = 3
_ADDRESS: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Document:
    """One document, to be read once and before the next one is asked for.

    Attributes:
        name: What messages call it: its path, and its path in the archive.
        stream: Its bytes, without compression.
    """

    name: str
    stream: io.BufferedReader

    def head(self) -> bytes:
        """Return its first bytes, up to 64 KB, without reading on."""
        return self.stream.peek(_PEEK)[:_PEEK]


Found: TypeAlias = Iterator[Document | Problem]


class _Allowance:
    """Limit of the bytes that the streams of one source give together."""

    def __init__(self, size: int, largest: int) -> None:
        self._limit = min(largest, max(MOST_TIMES * size, _SMALL))
        self._used = 0
        self.size = size

    def take(self, count: int) -> None:
        self._used += count
        if self._used > self._limit:
            raise SourceError(
                f"it unpacks to more than {self._limit:,} bytes; unpack it, and import its parts"
            )


class _Bounded(io.RawIOBase):
    """A stream that takes its bytes from *allowance*.

    Args:
        size: How many bytes it has; what a file grows by while it is read does not count.
    """

    def __init__(self, stream: IO[bytes], allowance: _Allowance, size: int = sys.maxsize) -> None:
        self._stream, self._allowance, self._left = stream, allowance, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        data = self._stream.read(min(len(view), self._left))
        self._allowance.take(len(data))
        self._left -= len(data)
        view[: len(data)] = data
        return len(data)


def open_sources(
    sources: Iterable[str | Path], web: Web | None = None, largest: int = LARGEST_SOURCE
) -> Found:
    """Yield every document in *sources*, and a problem for each one that cannot be opened.

    Folders are read with everything below them, in the order of the names, but for links that lead
    out of them. Archives (.gz, .tar, .tar.gz, .zip) are recognized by their content, not their
    names.

    Args:
        sources: Paths, and addresses that begin with http:// or https://.
        web: How addresses are read.
        largest: How many bytes one file or address may unpack to.
    """
    for source in sources:
        try:
            if str(source).casefold().startswith(_ADDRESS):
                web = web or _web()
                with web.download(str(source)) as stream:
                    yield from _outermost(str(source), stream, largest)
            elif Path(source).is_dir():
                yield from _folder(Path(source), largest)
            else:
                yield from _file(Path(source), largest)
        except SourceError as error:
            yield lost("cannot be read", str(source), detail=str(error), records=0)


def _web() -> Web:
    from .web import Web  # noqa: PLC0415  - a quarter of a second that paths do not need

    return Web()


def _folder(folder: Path, largest: int) -> Found:
    found = list(islice(_paths(folder), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise SourceError(f"it has more than {MOST_FILES:,} files; import its folders one by one")
    for each in found:
        if isinstance(each, Problem):
            yield each
        else:
            yield from _file(each, largest)
    if not any(isinstance(each, Path) or each.skipped for each in found):
        yield lost("nothing to read", str(folder), detail="no file of a known kind", records=0)


def _paths(folder: Path) -> Iterator[Path | Problem]:
    errors: list[OSError] = []
    for place, below, names in os.walk(folder, onerror=errors.append):
        below[:] = sorted(filter(_is_visible, below))
        linked = [name for name in below if Path(place, name).is_symlink()]
        yield from (_linked_folder(Path(place, name), folder) for name in linked)
        for path in (Path(place, name) for name in sorted(filter(_is_visible, names))):
            if path.suffix.casefold() not in (*_READABLE, *_PACKED):
                yield note("file of another kind", str(path))
            elif _leads_out(path, folder):
                yield lost(_LINK_OUTSIDE, str(path), detail=_LINK_ADVICE, records=0)
            elif not path.is_file():
                yield lost("not a plain file", str(path), records=0)
            else:
                yield path
    for error in errors:
        yield lost("cannot be read", str(error.filename), detail=_reason(error), records=0)


def _linked_folder(path: Path, folder: Path) -> Problem:
    if _leads_out(path, folder):
        return lost(_LINK_OUTSIDE, str(path), detail=_LINK_ADVICE, records=0)
    return note("linked folder not read", str(path), detail="it is read in its own place")


def _leads_out(path: Path, folder: Path) -> bool:
    # Unlike Path.resolve, realpath raises nothing for links in a circle.
    root, target = os.path.realpath(folder), os.path.realpath(path)
    return path.is_symlink() and not Path(target).is_relative_to(root)


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "__MACOSX"))


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _file(path: Path, largest: int) -> Found:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe may take for ever
            detail = "it is not a plain file; save its content to a file, and import that"
            yield lost("cannot be read", str(path), detail=detail, records=0)
            return
        with path.open("rb") as stream:
            yield from _outermost(str(path), stream, largest)
    except SourceError as error:
        yield lost("cannot be read", str(path), detail=str(error), records=0)
    except (OSError, ValueError) as error:  # such as a name with a NUL
        yield lost("cannot be read", str(path), detail=_reason(error), records=0)


def _outermost(name: str, stream: IO[bytes], largest: int) -> Found:
    size = os.fstat(stream.fileno()).st_size
    yield from _open(name, stream, _Allowance(size, largest), 0)


def _open(name: str, stream: IO[bytes], allowance: _Allowance, depth: int) -> Found:
    """Yield the documents of one stream, which is seekable at depth 0."""
    size = sys.maxsize if depth else allowance.size
    reader: io.BufferedReader = io.BufferedReader(_Bounded(stream, allowance, size), _PEEK)
    head = reader.peek(_PEEK)
    if is_gzip(head) and depth < _DEEPEST:
        with closing(io.BufferedReader(gzip.GzipFile(fileobj=reader))) as unpacked:
            yield from _guarded(name, _open(name, unpacked, allowance, depth + 1))
    elif is_zip(head) and not depth:
        yield from _guarded(name, _members(name, zip_members(name, stream), allowance, 1))
    elif is_tar(head) and depth < _DEEPEST:
        members = tar_members(name, reader)
        yield from _guarded(name, _members(name, members, allowance, depth + 1))
    elif is_gzip(head) or is_zip(head) or is_tar(head):
        yield lost("archive in an archive", name, detail="unpack it first", records=0)
    else:
        yield Document(name, reader)


def _guarded(name: str, found: Found) -> Found:
    try:
        yield from found
    except UNREADABLE as error:
        detail = str(error) or "it ends too early"
        yield lost("damaged archive", name, detail=f"{detail}; fetch or pack it again", records=0)


def _members(
    name: str, members: Iterable[Member | Problem], allowance: _Allowance, depth: int
) -> Found:
    is_empty = True
    for member in members:
        is_empty = False
        if isinstance(member, Problem):
            yield member
        else:
            yield from _member(f"{name}:{member.name}", member, allowance, depth)
    if is_empty:
        yield lost("nothing to read", name, detail="the archive is empty", records=0)


def _member(name: str, member: Member, allowance: _Allowance, depth: int) -> Found:
    path = Path(member.name)
    if any(part.startswith(("._", "__MACOSX")) for part in path.parts):
        return
    if path.suffix.casefold() in (*_READABLE, ".gz"):
        yield from _guarded(name, _opened(name, member, allowance, depth))
    else:
        yield note("file of another kind", name)


def _opened(name: str, member: Member, allowance: _Allowance, depth: int) -> Found:
    with member.open() as content:
        yield from _open(name, content, allowance, depth)
