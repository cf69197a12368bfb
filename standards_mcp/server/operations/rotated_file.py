"""A file of lines that several processes may append to, and that begins anew when it is full."""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from standards_mcp._utils.full_disk import reason_of

log = logging.getLogger(__name__)

_APPENDING: Final = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)  # Windows
)


class RotatedFile:
    """Appends lines; a full file gets the end ``.1``, and that one ``.2``.

    Each line is one write to the end of the file, so that those of several processes do not mix. It
    is with the operating system when `append` returns, which no end of the process takes back; a
    loss of power may. A line that does not fit on the disk is removed again. A file that was
    renamed by somebody else is left to them. A link, such as ``/dev/stderr``, is written to, and
    never renamed.

    Args:
        max_bytes: How long the file may be.
        kept: How many full files are kept.
    """

    def __init__(self, path: Path, max_bytes: int, kept: int) -> None:
        self._path, self._max_bytes, self._kept = path, max_bytes, kept
        self._descriptor: int | None = None
        self._whole = 0
        self._is_cut = self._is_stuck = False

    def append(self, line: bytes) -> None:
        """Write a line, which ends with its line feed.

        Raises:
            OSError: It cannot be written, or not all of it.
        """
        descriptor, size = self._open()
        is_full = size > 0 and size + len(line) > self._max_bytes
        if is_full and not self._path.is_symlink():
            self._try_to_rotate(descriptor)
            descriptor, size = self._open()
        data = b"\n" + line if self._is_torn(size) else line
        written = os.write(descriptor, data)
        if written < len(data):
            self._is_cut = not self._removed(descriptor, written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._is_cut = False
        self._whole = size + written

    @staticmethod
    def _removed(descriptor: int, written: int) -> bool:
        """Remove the part of a line that was written last; return False if it has to stay."""
        with suppress(OSError):  # a pipe cannot be cut
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            if os.fstat(descriptor).st_size == end:  # otherwise another process wrote after it
                os.ftruncate(descriptor, end - written)
                return True
        return False

    def _is_torn(self, size: int) -> bool:
        """Tell whether the file ends in the midst of a line, of this process or of another."""
        if size == 0:  # or it is a pipe, whose reader has what was written
            return self._is_cut
        if size == self._whole:  # nobody has written since this process did
            return False
        with suppress(OSError), self._path.open("rb", buffering=0) as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
        return self._is_cut  # it may be written only

    def close(self) -> None:
        """Close the file; another line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> tuple[int, int]:
        """Open the file that is under the path now, unless it is open; return it and its size."""
        if self._descriptor is not None:
            with suppress(FileNotFoundError):
                found = self._path.stat()
                if os.path.samestat(found, os.fstat(self._descriptor)):
                    return self._descriptor, found.st_size
            self.close()
        self._descriptor = os.open(self._path, _APPENDING, 0o600)
        self._whole, self._is_cut = 0, False
        return self._descriptor, os.fstat(self._descriptor).st_size

    def _try_to_rotate(self, full: int) -> None:
        """Rename the full file; where that fails, it becomes longer, so that no line is lost."""
        import filelock  # noqa: PLC0415  - costs start-up time

        try:
            # Without the lock or the file, another process renames it now, or just has.
            others = suppress(filelock.Timeout, FileNotFoundError)
            with others, filelock.FileLock(f"{self._path}.lock", timeout=0):
                if os.path.samestat(self._path.stat(), os.fstat(full)):
                    self._rotate()
        except OSError as exc:
            if not self._is_stuck:
                fields = {"path": str(self._path), "reason": reason_of(exc)}
                log.error("a full file cannot be renamed, and grows on", extra=fields)  # noqa: TRY400  - the reason says it all
            self._is_stuck = True
        else:
            self._is_stuck = False

    def _rotate(self) -> None:
        self.close()  # on Windows, an open file cannot be renamed
        for number in range(self._kept - 1, 0, -1):
            with suppress(FileNotFoundError):
                self._numbered(number).replace(self._numbered(number + 1))
        self._path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
