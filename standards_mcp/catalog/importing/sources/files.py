"""Find the documents in what a user names: files, folders, archives and addresses.

Nothing is unpacked to disk, so that no name inside an archive can lead anywhere. What has been
unpacked is counted, so that no archive can fill the memory.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

from typing_extensions import Buffer

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.importing.problems import Problem, SourceError, lost, note

from .web import Web, is_address

LARGEST_SOURCE: Final = 4 * 2**30
"""How many bytes one file or address may unpack to, with all documents in it."""
MOST_MEMBERS: Final = 200_000
_READABLE: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".tab")
_PACKED: Final = (".gz", ".tgz", ".tar", ".zip")
_GZIP, _ZIP, _TAR = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06"), b"ustar"
_TAR_MARK: Final = 257
_PEEK: Final = 65_536
_DEEPEST: Final = 3
UNREADABLE: Final = (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
"""What reading a damaged file may raise."""


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


@dataclass(slots=True)
class _Allowance:
    """How many bytes the streams of one source may still give together."""

    limit: int
    used: int = 0

    def take(self, count: int) -> None:
        self.used += count
        if self.used > self.limit:
            raise SourceError(
                f"it unpacks to more than {self.limit:,} bytes; unpack it, and import its parts"
            )


class _Bounded(io.RawIOBase):
    """A stream that gives as much as *allowance* lets it."""

    def __init__(self, stream: IO[bytes], allowance: _Allowance) -> None:
        self._stream, self._allowance = stream, allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        data = self._stream.read(len(view))
        self._allowance.take(len(data))
        view[: len(data)] = data
        return len(data)


def open_sources(
    sources: Iterable[str | Path], web: Web | None = None, largest: int = LARGEST_SOURCE
) -> Found:
    """Yield every document in *sources*, and a problem for each one that cannot be opened.

    Folders are read with everything below them, in the order of the names; .gz, .tar, .tar.gz
    and .zip by what they contain, whatever their names are.

    Args:
        sources: Paths, and addresses that begin with http:// or https://.
        web: How addresses are read.
        largest: How many bytes one file or address may unpack to.
    """
    for source in sources:
        try:
            if is_address(str(source)):
                with (web or Web()).download(str(source)) as stream:
                    yield from _open(str(source), stream, _Allowance(largest))
            elif Path(source).is_dir():
                yield from _folder(Path(source), largest)
            else:
                yield from _file(Path(source), largest)
        except SourceError as error:
            yield lost("cannot be read", str(source), detail=str(error), records=0)


def download_documents(
    addresses: Sequence[str], get: Callable[[str], bytes], progress: Progress | None
) -> Found:
    """Yield the document at each address, and a problem for each that cannot be read."""
    for number, address in enumerate(addresses, 1):
        try:
            yield Document(address, io.BufferedReader(io.BytesIO(get(address))))
        except SourceError as error:
            yield lost("cannot be read", address, detail=str(error), records=0)
        if progress is not None:
            progress(number, len(addresses))


def _folder(folder: Path, largest: int) -> Found:
    found = 0
    errors: list[OSError] = []
    for place, below, names in os.walk(folder, onerror=errors.append):
        below[:] = sorted(filter(_is_visible, below))
        linked = [name for name in below if Path(place, name).is_symlink()]
        yield from (note("linked folder not read", str(Path(place, name))) for name in linked)
        for path in (Path(place, name) for name in sorted(filter(_is_visible, names))):
            if path.suffix.casefold() not in (*_READABLE, *_PACKED):
                yield note("file of another kind", str(path))
            elif not path.is_file():
                yield lost("not a plain file", str(path), records=0)
            else:
                found += 1
                yield from _file(path, largest)
    for error in errors:
        yield lost("cannot be read", str(error.filename), detail=_reason(error), records=0)
    if not (found or errors):
        yield lost("nothing to read", str(folder), detail="no file of a known kind", records=0)


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "__MACOSX"))


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _file(path: Path, largest: int) -> Found:
    try:
        with path.open("rb") as stream:
            yield from _open(str(path), stream, _Allowance(largest))
    except SourceError as error:
        yield lost("cannot be read", str(path), detail=str(error), records=0)
    except OSError as error:
        yield lost("cannot be read", str(path), detail=_reason(error), records=0)


def _open(name: str, stream: IO[bytes], allowance: _Allowance, depth: int = 0) -> Found:
    """Yield the documents of one stream, which is seekable unless it is inside another."""
    reader: io.BufferedReader = io.BufferedReader(_Bounded(stream, allowance), _PEEK)
    head = reader.peek(_PEEK)
    is_tar = head[_TAR_MARK:].startswith(_TAR)
    if head.startswith(_GZIP) and depth < _DEEPEST:
        with closing(io.BufferedReader(gzip.GzipFile(fileobj=reader))) as unpacked:
            yield from _guarded(name, _open(name, unpacked, allowance, depth + 1))
    elif head.startswith(_ZIP) and not depth:
        yield from _guarded(name, _zip(name, stream, allowance))
    elif is_tar and depth < _DEEPEST:
        yield from _guarded(name, _tar(name, reader, allowance, depth + 1))
    elif head.startswith((_GZIP, *_ZIP)) or is_tar:
        yield lost("archive in an archive", name, detail="unpack it first", records=0)
    else:
        yield Document(name, reader)


def _guarded(name: str, found: Found) -> Found:
    try:
        yield from found
    except UNREADABLE as error:
        yield lost("damaged archive", name, detail=str(error), records=0)


def _tar(name: str, stream: IO[bytes], allowance: _Allowance, depth: int) -> Found:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive):
            inner = f"{name}:{_printable(member.name)}"
            if number >= MOST_MEMBERS:
                yield lost("too many files in an archive", name, records=0)
                return
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                yield from _member(inner, content, allowance, depth)
            elif not member.isdir():
                yield lost("not a plain file", inner, records=0)


def _zip(name: str, stream: IO[bytes], allowance: _Allowance) -> Found:
    stream.seek(0)
    with zipfile.ZipFile(stream) as archive:
        if "[Content_Types].xml" in archive.namelist():
            detail = "this is a spreadsheet or document; save it as CSV"
            yield lost("no standards", name, detail=detail, records=0)
            return
        for info in archive.infolist()[:MOST_MEMBERS]:
            inner = f"{name}:{_printable(info.filename)}"
            if info.is_dir():
                continue
            try:
                with archive.open(info) as content:
                    yield from _guarded(inner, _member(inner, content, allowance, 1))
            except zipfile.BadZipFile as error:
                yield lost("damaged archive", inner, detail=str(error), records=0)
            except (RuntimeError, NotImplementedError) as error:  # encrypted, or an odd method
                yield lost("cannot be unpacked", inner, detail=str(error), records=0)
        if not archive.infolist():
            yield lost("nothing to read", name, detail="the archive is empty", records=0)
        if len(archive.infolist()) > MOST_MEMBERS:
            yield lost("too many files in an archive", name, records=0)


def _member(name: str, content: IO[bytes], allowance: _Allowance, depth: int) -> Found:
    path = Path(name.rpartition(":")[2])
    if any(part.startswith(("._", "__MACOSX")) for part in path.parts):
        return
    if path.suffix.casefold() in (*_READABLE, ".gz"):
        yield from _open(name, content, allowance, depth)
    else:
        yield note("file of another kind", name)


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:300]
