"""Open the files in an archive one after the other, without unpacking them to disk.

The sizes that an archive states are not trusted. This module limits the number of files and the
headers; `files` counts the bytes that they unpack to.
"""

from __future__ import annotations

import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Final, NamedTuple, Self, cast

from standards_mcp_catalog.importing.report import Problem, SourceError, lost

MOST_FILES: Final = 50_000
"""How many files an archive or a folder may have."""
UNREADABLE: Final = (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
"""Errors of a damaged file."""
_GZIP, _ZIP, _TAR = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06"), b"ustar"
_TAR_MARK: Final = 257
_DAMAGE: Final = (ValueError, OverflowError, struct.error, NotImplementedError)
_LARGEST_LIST: Final = 2**23  # bytes of a zip's list of files
_LARGEST_HEADER: Final = 2**20
_LOCAL_HEADER: Final = 30
# `zipfile` unpacks bzip2 and LZMA in one step, without a bound, and publishers of standards do not
# use them.
_READ_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LONGEST_NAME: Final = 300
_LINK: Final = "link in an archive"
_NOT_PLAIN: Final = "not a plain file"


class Member(NamedTuple):
    """A file in an archive, to be read before the next one is asked for.

    Attributes:
        name: Its path in the archive, as far as it can be shown.
        open: Returns its content. Raises one of `UNREADABLE` if it is damaged.
    """

    name: str
    open: Callable[[], IO[bytes]]


def is_gzip(head: bytes) -> bool:
    """Return whether a file that begins with *head* is compressed by gzip."""
    return head.startswith(_GZIP)


def is_zip(head: bytes) -> bool:
    """Return whether a file that begins with *head* is a zip archive."""
    return head.startswith(_ZIP)


def is_tar(head: bytes) -> bool:
    """Return whether a file that begins with *head* is a tar archive."""
    return head[_TAR_MARK:].startswith(_TAR)


def zip_members(name: str, stream: IO[bytes]) -> Iterator[Member | Problem]:
    """Yield the files of the zip archive *stream*, which is seekable.

    Raises:
        SourceError: It is made such that it would take too much.
    """
    stream.seek(0)
    try:
        archive = zipfile.ZipFile(cast("IO[bytes]", _Guard(stream)))
    except _DAMAGE as error:
        raise zipfile.BadZipFile(str(error)) from None
    with archive:
        infos = archive.infolist()
        if any(info.filename == "[Content_Types].xml" for info in infos):
            detail = "this is a spreadsheet or document; save it as CSV"
            yield lost("no standards", name, detail=detail, records=0)
            return
        # A zip archive has a list of its files, so it is refused whole. The files of a tar archive
        # come one by one, so reading ends at the limit.
        _check(infos)
        for info in infos:
            shown = _printable(info.filename)
            if info.is_dir():
                continue
            reason, advice = _refusal(info)
            if reason:
                yield lost(reason, f"{name}:{shown}", detail=advice, records=0)
            else:
                yield Member(shown, partial(_opened, archive, info))


def tar_members(name: str, stream: IO[bytes]) -> Iterator[Member | Problem]:
    """Yield the files of the tar archive *stream*.

    Raises:
        SourceError: It is made such that it would take too much.
    """
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:
        for _ in range(MOST_FILES):
            try:
                member = archive.next()
            except _DAMAGE as error:
                raise tarfile.ReadError(str(error)) from None
            if member is None:
                return
            shown = _printable(member.name)
            content = archive.extractfile(member) if _is_plain(member) else None
            if content is not None:
                yield Member(shown, partial(_same, content))
            elif not member.isdir():
                reason = _LINK if member.issym() or member.islnk() else _NOT_PLAIN
                yield lost(reason, f"{name}:{shown}", records=0)
        if archive.next() is not None:
            raise _too_many()


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.isreg() and not member.issparse()  # the gaps of a sparse file may be endless


class _Header(tarfile.TarInfo):
    """A header that names no file larger than memory as the place of a name or of attributes."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        is_file = header.type in tarfile.SUPPORTED_TYPES and header.type not in _NAME_TYPES
        if header.size > _LARGEST_HEADER and not is_file:
            raise SourceError("a name or header in it is too long; pack it again")
        return header


_NAME_TYPES: Final = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip


class _Guard:
    """A stream that refuses to read a list of files that would fill the memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_LIST:
            raise _too_many()
        return self._stream.read(size)


def _too_many() -> SourceError:
    return SourceError(f"it has more than {MOST_FILES:,} files; split it")


def _check(infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MOST_FILES:
        raise _too_many()
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise SourceError("its files overlap, as no program packs them; pack it again")
        end = info.header_offset + _LOCAL_HEADER + info.compress_size


def _refusal(info: zipfile.ZipInfo) -> tuple[str, str]:
    """Return the reason not to read a file, and advice; both are "" if it can be read."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        return _LINK if kind == stat.S_IFLNK else _NOT_PLAIN, ""
    if info.flag_bits & 1:
        return "cannot be unpacked", "it is encrypted; unpack it with its password"
    # Other methods unpack all of it at once, however large it is.
    if info.compress_type not in _READ_METHODS:
        return "cannot be unpacked", "it is compressed in an unusual way; pack it with deflate"
    return "", ""


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(info)
    except (*_DAMAGE, RuntimeError) as error:
        raise zipfile.BadZipFile(str(error)) from None


def _same(content: IO[bytes]) -> IO[bytes]:
    return content


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:_LONGEST_NAME]
