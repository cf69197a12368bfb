"""Read members of zip archives within limits; nothing is unpacked to the disk."""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from typing import IO, Final
from urllib.parse import unquote

from .items import InputError

MOST_MEMBERS: Final = 10_000
_MEGABYTE: Final = 1_000_000
_LARGEST_MEMBER: Final = 20 * _MEGABYTE
_MOST_UNPACKED: Final = 500 * _MEGABYTE
_LARGEST_DIRECTORY: Final = 10 * _MEGABYTE
# `zipfile` unpacks bzip2 and LZMA in one step, without a bound.
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE: Final = (
    EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, UnicodeError, ValueError,
    struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_END: Final = struct.Struct("<4s4H2LH")
_END_MARK: Final = b"PK\x05\x06"
_LARGE_MARK: Final = b"PK\x06\x07"
_LARGE_SIZE: Final = 20


class Archive:
    """The members of a zip archive.

    Raises:
        InputError: The archive is damaged or has too many members.
    """

    def __init__(self, file: IO[bytes]) -> None:
        _check_directory(file)
        try:
            self._archive = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise InputError(f"it is damaged, or not a zip archive: {error}") from None
        members = self._archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise _too_many_members()
        self._members = {posixpath.normpath(member.filename): member for member in members}
        self._left = _MOST_UNPACKED

    def find(self, reference: str) -> str | None:
        """Return the name of the member that a reference in a manifest means, or None."""
        for path in (reference, unquote(reference)):
            name = posixpath.normpath(path.partition("?")[0].partition("#")[0])
            if name in self._members:
                return name
        return None

    def read(self, name: str) -> bytes:
        """Return the bytes of a member, by a name that `find` returned.

        Raises:
            InputError: The member is encrypted, damaged or too large.
        """
        member = self._members[name]
        if member.flag_bits & 1:
            raise InputError("it is protected by a password")
        if member.compress_type not in _METHODS:
            raise InputError("it is compressed in an unusual way; pack it as a plain zip archive")
        most = min(_LARGEST_MEMBER, self._left)
        try:
            with self._archive.open(member) as stream:
                data = stream.read(most + 1)
        except _DAMAGE as error:
            raise InputError(f"it is damaged: {error}") from None
        self._left -= len(data)
        if len(data) > most:
            what = "it unpacks" if most == _LARGEST_MEMBER else "its archive unpacks"
            limit = _LARGEST_MEMBER if most == _LARGEST_MEMBER else _MOST_UNPACKED
            raise InputError(f"{what} to more than {limit // _MEGABYTE} MB; split it")
        return data


def _check_directory(file: IO[bytes]) -> None:
    """Refuse an archive with a large directory before `zipfile` reads it into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - 0xFFFF))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) < at + _END.size:
        raise InputError("it is damaged, or not a zip archive")
    *_, members, directory, _, _ = _END.unpack_from(tail, at)
    # Archives with more than 65,535 members or 4 GB have another record before this one.
    is_large = tail[max(0, at - _LARGE_SIZE) : at].startswith(_LARGE_MARK)
    if is_large or members > MOST_MEMBERS or directory > _LARGEST_DIRECTORY:
        raise _too_many_members()


def _too_many_members() -> InputError:
    return InputError(
        f"it has more than {MOST_MEMBERS:,} members, more than 4 GB, or a directory of more than "
        "10 MB; split it"
    )
