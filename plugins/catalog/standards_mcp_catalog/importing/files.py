"""Find the documents in files, folders, archives and addresses.

Nothing is unpacked to disk, so names inside archives cannot lead anywhere. Unpacked bytes are
counted, whatever sizes an archive states, so no archive can fill the memory or take for ever.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from typing_extensions import Buffer

from standards_mcp_catalog.importing.report import Problem, SourceError, lost, note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .web import Web

LARGEST_SOURCE: Final = 4 * 2**30
"""Most bytes that one file or address may unpack to, with all documents in it."""
# Real data reaches a tenth of this.
MOST_EXPANSION: Final = 200
"""Most unpacked bytes for each packed byte; `_ALWAYS_ALLOWED` bytes are always allowed."""
MOST_FILES: Final = 50_000
"""How many files an archive or a folder may have."""
UNREADABLE: Final = (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
"""Errors of a damaged file."""
# `zipfile` and `tarfile` also raise these for damaged headers.
_DAMAGE: Final = (ValueError, OverflowError, struct.error, NotImplementedError, RuntimeError)
_ALWAYS_ALLOWED: Final = 64 * 2**20
_TEXT_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".tab")
_KNOWN_SUFFIXES: Final = (*_TEXT_SUFFIXES, ".gz", ".tgz", ".tar", ".zip")
_GZIP_MAGIC, _ZIP_MAGIC, _TAR_MAGIC = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06"), b"ustar"
_TAR_MAGIC_AT: Final = 257
# `zipfile` unpacks bzip2 and LZMA in one step, without a bound, and publishers of standards do not
# use them.
_ZIP_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PEEK: Final = 65_536
_MAX_NESTING: Final = 3
_LONGEST_NAME: Final = 300
_URL_PREFIXES: Final = ("http://", "https://")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Document:
    """One document, to be read once, and before the next one is opened.

    Attributes:
        name: For messages: the path of the file, and the path inside an archive.
        stream: The uncompressed bytes.
    """

    name: str
    stream: io.BufferedReader

    def head(self) -> bytes:
        """Return the first bytes, up to 64 KB, without consuming them."""
        return self.stream.peek(_PEEK)[:_PEEK]


Found: TypeAlias = Iterator[Document | Problem]


class _Allowance:
    """Limit of the unpacked bytes of one source, over all its streams."""

    def __init__(self, size: int, largest: int) -> None:
        self._limit = min(largest, max(MOST_EXPANSION * size, _ALWAYS_ALLOWED))
        self._used, self.size = 0, size

    def take(self, count: int) -> None:
        self._used += count
        if self._used > self._limit:
            raise SourceError(
                f"it unpacks to more than {self._limit:,} bytes; unpack it, and import its parts"
            )


class _Bounded(io.RawIOBase):
    """Stream that counts its bytes against *allowance*.

    Args:
        size: Bytes after which the stream ends, even if the file grows while it is read.
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

    Folders are read with their subfolders, in the order of names, without links that lead out of
    the folder. Archives (.gz, .tar, .tar.gz, .zip) are recognized by their content, not their
    names.

    Args:
        sources: Paths, and addresses that begin with http:// or https://.
        web: The HTTP client for addresses.
        largest: Most bytes that one file or address may unpack to.
    """
    for source in sources:
        try:
            if str(source).casefold().startswith(_URL_PREFIXES):
                from .web import Web  # noqa: PLC0415  - takes a quarter of a second

                web = web or Web()
                with web.download(str(source)) as stream:
                    yield from _read_source(str(source), stream, largest)
            elif Path(source).is_dir():
                yield from _read_folder(Path(source), largest)
            else:
                yield from _read_file(Path(source), largest)
        except SourceError as error:
            yield _unreadable(source, str(error))


def _unreadable(name: object, detail: str) -> Problem:
    return lost("cannot be read", str(name), detail=detail, records=0)


def _too_many_files() -> SourceError:
    return SourceError(f"it has more than {MOST_FILES:,} files; split it")


def _read_folder(folder: Path, largest: int) -> Found:
    entries = list(islice(_paths(folder), MOST_FILES + 1))
    if len(entries) > MOST_FILES:
        raise _too_many_files()
    for each in entries:
        if isinstance(each, Problem):
            yield each
        else:
            yield from _read_file(each, largest)
    if not any(isinstance(each, Path) or each.skipped for each in entries):
        yield lost("nothing to read", str(folder), detail="no file of a known kind", records=0)


def _paths(folder: Path) -> Iterator[Path | Problem]:
    errors: list[OSError] = []
    for parent, folders, names in os.walk(folder, onerror=errors.append):
        folders[:] = sorted(filter(_is_visible, folders))
        # `os.walk` does not follow links to folders.
        links = [Path(parent, name) for name in folders if Path(parent, name).is_symlink()]
        for path in (*links, *(Path(parent, name) for name in sorted(filter(_is_visible, names)))):
            if path not in links and path.suffix.casefold() not in _KNOWN_SUFFIXES:
                yield note("file of another kind", str(path))
            elif _leads_out(path, folder):
                detail = "import its target by its own path"
                yield lost("link that leaves the folder", str(path), detail=detail, records=0)
            elif path in links:
                yield note("linked folder not read", str(path), detail="it is read at its own path")
            elif not path.is_file():
                yield lost("not a plain file", str(path), records=0)
            else:
                yield path
    for error in errors:
        yield _unreadable(error.filename, error.strerror or str(error))


def _leads_out(path: Path, folder: Path) -> bool:
    # Unlike Path.resolve, realpath raises nothing for links in a circle.
    root, target = os.path.realpath(folder), os.path.realpath(path)
    return path.is_symlink() and not Path(target).is_relative_to(root)


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "__MACOSX"))


def _read_file(path: Path, largest: int) -> Found:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe may take for ever
            yield _unreadable(
                path, "it is not a plain file; save its content to a file, and import that"
            )
            return
        with path.open("rb") as stream:
            yield from _read_source(str(path), stream, largest)
    except SourceError as error:
        yield _unreadable(path, str(error))
    except (OSError, ValueError) as error:  # such as a name with a NUL
        yield _unreadable(path, getattr(error, "strerror", None) or str(error))


def _read_source(name: str, stream: IO[bytes], largest: int) -> Found:
    return _open(name, stream, _Allowance(os.fstat(stream.fileno()).st_size, largest), 0)


def _open(name: str, stream: IO[bytes], allowance: _Allowance, depth: int) -> Found:
    """Yield the documents of one stream, which is seekable at depth 0."""
    size = sys.maxsize if depth else allowance.size
    reader: io.BufferedReader = io.BufferedReader(_Bounded(stream, allowance, size), _PEEK)
    head = reader.peek(_PEEK)
    is_gzip, is_zip = head.startswith(_GZIP_MAGIC), head.startswith(_ZIP_MAGIC)
    is_tar = head[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC)
    if is_gzip and depth < _MAX_NESTING:
        with closing(io.BufferedReader(gzip.GzipFile(fileobj=reader))) as unpacked:
            yield from _checked(name, _open(name, unpacked, allowance, depth + 1))
    elif is_zip and not depth:
        yield from _checked(name, _open_all(name, _zip_members(name, stream), allowance, 1))
    elif is_tar and depth < _MAX_NESTING:
        yield from _checked(name, _open_all(name, _tar_members(name, reader), allowance, depth + 1))
    elif is_gzip or is_zip or is_tar:
        yield lost("archive in an archive", name, detail="unpack it first", records=0)
    else:
        yield Document(name, reader)


def _checked(name: str, found: Found) -> Found:
    try:
        yield from found
    except UNREADABLE as error:
        detail = str(error) or "it ends too early"
        yield lost("damaged archive", name, detail=f"{detail}; fetch or pack it again", records=0)


_Member: TypeAlias = tuple[str, Callable[[], IO[bytes]]]
"""Path of a file in an archive, and a function to open it before the next one is yielded."""


def _open_all(
    name: str, members: Iterable[_Member | Problem], allowance: _Allowance, depth: int
) -> Found:
    is_empty = True
    for member in members:
        is_empty = False
        if isinstance(member, Problem):
            yield member
            continue
        path, source = Path(member[0]), f"{name}:{member[0]}"
        if any(part.startswith(("._", "__MACOSX")) for part in path.parts):
            continue
        if path.suffix.casefold() in (*_TEXT_SUFFIXES, ".gz"):
            yield from _checked(source, _open_member(source, member[1], allowance, depth))
        else:
            yield note("file of another kind", source)
    if is_empty:
        yield lost("nothing to read", name, detail="the archive is empty", records=0)


def _open_member(
    name: str, opener: Callable[[], IO[bytes]], allowance: _Allowance, depth: int
) -> Found:
    with opener() as content:
        yield from _open(name, content, allowance, depth)


def _zip_members(name: str, stream: IO[bytes]) -> Iterator[_Member | Problem]:
    """Yield the files of a zip archive, or raise `SourceError` if it has too many."""
    stream.seek(0)
    with _convert_damage(partial(zipfile.ZipFile, stream)) as archive:
        infos = archive.infolist()
        if any(info.filename == "[Content_Types].xml" for info in infos):
            detail = "this is a spreadsheet or document; save it as CSV"
            yield lost("no standards", name, detail=detail, records=0)
            return
        if len(infos) > MOST_FILES:
            raise _too_many_files()
        for info in infos:
            shown = _printable(info.filename)
            is_plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            if info.is_dir():
                continue
            if not is_plain:
                yield lost("not a plain file", f"{name}:{shown}", records=0)
            elif info.flag_bits & 1 or info.compress_type not in _ZIP_METHODS:
                detail = "it is encrypted, or compressed in an unusual way; unpack it first"
                yield lost("cannot be unpacked", f"{name}:{shown}", detail=detail, records=0)
            else:
                yield shown, partial(_convert_damage, partial(archive.open, info))


def _tar_members(name: str, stream: IO[bytes]) -> Iterator[_Member | Problem]:
    """Yield the files of a tar archive one by one; raise `SourceError` after the last allowed."""
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for _ in range(MOST_FILES):
            member = _convert_damage(archive.next)
            if member is None:
                return
            shown = _printable(member.name)
            # The gaps of a sparse file may be endless.
            is_plain = member.isreg() and not member.issparse()
            if is_plain:
                yield shown, cast("Callable[[], IO[bytes]]", partial(archive.extractfile, member))
            elif not member.isdir():
                yield lost("not a plain file", f"{name}:{shown}", records=0)
        if archive.next() is not None:
            raise _too_many_files()


def _convert_damage(call: Callable[[], _T]) -> _T:
    """Return the result of *call*; convert errors of `_DAMAGE` to one of `UNREADABLE`."""
    try:
        return call()
    except _DAMAGE as error:
        raise zipfile.BadZipFile(str(error)) from None


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:_LONGEST_NAME]
