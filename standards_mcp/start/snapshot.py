"""Snapshots of what the host offered at its last start: their format and their place.

A snapshot is one file: a line with a digest of the rest, a line of JSON, and the results as JSON
texts, one after the other. The JSON has the fingerprint under which the snapshot is valid, and the
place of each result.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from stat import S_ISREG
from typing import Any, Final, NamedTuple, cast

FORMAT: Final = 1
_MAX_BYTES: Final = 8 << 20
_MAX_FILES: Final = 20
_SALT_BYTES: Final = 32


class SnapshotError(Exception):
    """A snapshot cannot be used; the message says why."""


class Snapshot(NamedTuple):
    """What the host offered at a start.

    Attributes:
        fingerprint: The parts of the fingerprint; see `fingerprint`.
        variables: The environment variables that settings of plugins read.
        files: The files that count for the fingerprint.
        results: Results as JSON, by key; the readers choose the keys.
        note: Why the last start was not answered, or an empty string.
    """

    fingerprint: Mapping[str, str]
    variables: Collection[str]
    files: Collection[str]
    results: Mapping[str, bytes]
    note: str = ""

    def encode(self) -> bytes:
        """Return the bytes of the file; equal results are stored once."""
        offsets: dict[bytes, int] = {}
        size = 0
        for result in self.results.values():
            if result not in offsets:
                offsets[result] = size
                size += len(result)
        body = b"".join(offsets)
        head = {
            "format": FORMAT,
            "fingerprint": dict(self.fingerprint),
            "variables": sorted(self.variables),
            "files": sorted(self.files),
            "note": self.note,
            "results": {key: [offsets[text], len(text)] for key, text in self.results.items()},
        }
        rest = json.dumps(head).encode() + b"\n" + body
        return _digest(rest) + b"\n" + rest


def decode(data: bytes) -> Snapshot:
    """Return the snapshot in the bytes of a file.

    Raises:
        SnapshotError: The bytes are damaged, or of another format.
    """
    digest, _, rest = data.partition(b"\n")
    if digest != _digest(rest):
        raise SnapshotError("the snapshot is damaged")
    head_line, _, body = rest.partition(b"\n")
    try:
        head: Any = json.loads(head_line)
        if head["format"] != FORMAT:
            raise SnapshotError("the snapshot is of another format")
        places = cast("dict[str, list[int]]", head["results"])
        return Snapshot(
            fingerprint={str(part): str(value) for part, value in head["fingerprint"].items()},
            variables=[str(name) for name in head["variables"]],
            files=[str(file) for file in head["files"]],
            results={key: body[at : at + size] for key, (at, size) in places.items()},
            note=str(head["note"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SnapshotError("the snapshot is damaged") from None


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()


class Store:
    """The snapshots of one state folder.

    Files are private and replaced in one step. The oldest files are removed. Each write raises an
    error if the folder cannot be written.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def salt(self) -> bytes:
        """Return a secret of this state folder, or b"" before the first snapshot was written.

        It is b"", too, if the file is unreadable, damaged or another user may have written it.
        """
        with suppress(OSError):
            salt = _read_own(f"{self._folder}/salt")
            return salt if len(salt) == _SALT_BYTES else b""
        return b""

    def read(self, name: str) -> Snapshot:
        """Return a snapshot.

        Raises:
            SnapshotError: There is no usable file.
        """
        try:
            return decode(_read_own(f"{self._folder}/{name}"))
        except FileNotFoundError:
            raise SnapshotError("there was no snapshot") from None
        except OSError as exc:
            raise SnapshotError(f"the snapshot cannot be read: {exc.strerror}") from None

    def make_salt(self) -> bytes:
        """Return the secret of this state folder; make it first if it is missing or damaged.

        Raises:
            OSError: The folder is not writable.
        """
        from pathlib import Path  # noqa: PLC0415  - not at each start

        from standards_mcp.files import private_folder, write_private  # noqa: PLC0415  - as above

        if salt := self.salt():
            return salt
        private_folder(Path(self._folder))
        file, scratch = f"{self._folder}/salt", f"{self._folder}/salt-{os.urandom(8).hex()}"
        write_private(Path(scratch), os.urandom(_SALT_BYTES))
        try:
            # Several starts at a time must agree, so the first link stays.
            os.link(scratch, file)
        except FileExistsError:
            if not self.salt():  # a damaged file
                os.replace(scratch, file)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(scratch)
        return self.salt()

    def write(self, name: str, snapshot: Snapshot) -> None:
        """Store a snapshot, unless it is too large; an equal one counts as used.

        Raises:
            OSError: The folder is not writable.
        """
        from pathlib import Path  # noqa: PLC0415  - not at each start

        from standards_mcp.files import replace_privately  # noqa: PLC0415  - as above

        data, file = snapshot.encode(), f"{self._folder}/{name}"
        with suppress(OSError):
            if _read_own(file) == data:
                os.utime(file)
                return
        if len(data) <= _MAX_BYTES:
            replace_privately(Path(file), data)
            self._remove_oldest()

    def remove(self, name: str) -> None:
        """Remove a snapshot, if there is one."""
        with suppress(OSError):
            os.unlink(f"{self._folder}/{name}")

    def _remove_oldest(self) -> None:
        with suppress(OSError), os.scandir(self._folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(".snapshot")]
            files.sort(key=lambda entry: entry.stat().st_mtime_ns)
            for entry in files[:-_MAX_FILES]:
                os.unlink(entry.path)


def _read_own(path: str) -> bytes:
    """Return the bytes of a file that no other user can have written.

    On Windows, the owner and the mode are not checked.

    Raises:
        OSError: There is no such file, it is too large, or another user owns it or may write to it.
    """
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not S_ISREG(status.st_mode):
            raise OSError(22, "it is not a file")
        if sys.platform != "win32" and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise PermissionError(1, "another user may have written it")
        if status.st_size > _MAX_BYTES + (1 << 20):
            raise OSError(27, "it is too large")
        return file.read()
