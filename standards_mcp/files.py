"""Write files: edits of users' files, with backups, and private files of the host and plugins.

A write succeeds as a whole or changes nothing. Only the owner can read private files and folders;
on Windows, modes have no effect. Files that a user names, such as an export, follow the umask.
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IMODE, S_ISVTX
from typing import IO, Final, TextIO, TypeAlias

from standards_mcp._utils import full_disk
from standards_mcp._utils.places import user_state_folder
from standards_mcp._utils.text import BYTE_ORDER_MARK, describe_decoding, keeping_style

__all__ = [
    "BYTE_ORDER_MARK",
    "FILE_MODE",
    "Edit",
    "describe_decoding",
    "diff",
    "edit_text",
    "full_disk",
    "keeping_style",
    "open_private",
    "private_folder",
    "read_text",
    "replacing",
    "restrict",
    "write_private",
]

FileStamp: TypeAlias = tuple[int, int, int] | None
FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_KEPT_BACKUPS: Final = 10
# Clients edit their files without a lock, so an edit is compared and tried again. Commands of this
# host also take a lock: six at once could overtake one of them five times.
_ATTEMPTS: Final = 5
_LONGEST_WAIT: Final = 10.0  # seconds; the other edit may wait for a user's answer


@dataclass(frozen=True, slots=True)
class Edit:
    """The result of an edit.

    Attributes:
        before: The old text, empty if there was no file.
        backup: The file with the old text, or None if there was no file or no change.
    """

    before: str
    after: str
    backup: Path | None = None

    @property
    def changes(self) -> bool:
        """True if the text has changed."""
        return self.before != self.after


def read_text(path: Path) -> str | None:
    """Return the text of a file with its line ends, or None if there is no file.

    Raises:
        OSError: The file cannot be read.
        UnicodeDecodeError: The file is not UTF-8.
    """
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None


def edit_text(path: Path, change: Callable[[str], str], *, dry_run: bool = False) -> Edit:
    """Apply *change* to the text of a file. See `replace_text`.

    If another program, such as the owner of the file, writes in the meantime, *change* is called
    again on the new text.

    Args:
        dry_run: Write nothing.

    Raises:
        OSError: The file or its folder cannot be read or written; nothing has changed then.
        UnicodeDecodeError: The file is not UTF-8.
    """
    target = path.resolve()
    with _edit_lock() if not dry_run else nullcontext():
        for _ in range(_ATTEMPTS):
            before = read_text(target)
            edit = Edit(before or "", change(before or ""))
            if dry_run or not edit.changes:
                return edit
            with _scratch_file(target, edit.after) as scratch:
                if read_text(target) == before:
                    return replace(edit, backup=_replace_target(scratch, target))
    raise OSError(errno.EBUSY, "another program keeps changing it; try again")


@contextmanager
def _edit_lock() -> Generator[None]:
    """Let our own commands edit one after the other, if the system supports locks."""
    import filelock  # noqa: PLC0415  - only where something is edited

    with ExitStack() as stack:
        with suppress(OSError):  # this includes filelock.Timeout
            file = private_folder(user_state_dir()) / "edits.lock"
            stack.enter_context(filelock.FileLock(file, _LONGEST_WAIT, FILE_MODE))
        yield


def replace_text(path: Path, text: str) -> Path | None:
    """Replace the text of *path*, and return the path of the backup.

    A link stays a link, the file keeps its mode, and a reader sees the old text or the new one.
    Only the owner can read a new file, because it may contain secrets. The folder keeps the last
    ten backups.

    Raises:
        OSError: The file or its folder cannot be written; nothing has changed then.
    """
    target = path.resolve()
    with _scratch_file(target, text) as scratch:
        return _replace_target(scratch, target)


def diff(path: Path, before: str, after: str) -> str:
    """Return a unified diff without context lines, which may contain secrets."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), n=0, lineterm=""
    )
    return "\n".join(lines)


def user_state_dir() -> Path:
    """Return the user's folder for the state of programs."""
    return Path(user_state_folder(os.environ))


def of_environment(folder: Path, name: str, suffix: str) -> Path:
    """Return the path of this Python environment's file; environments may share a folder."""
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    return folder / f"{name}-{environment}{suffix}"


def _replace_target(scratch: Path, target: Path) -> Path | None:
    """Rename a scratch file to *target*, and return the path of the backup."""
    if not target.exists():
        scratch.replace(target)
        return None
    shutil.copymode(target, scratch)
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    backup = target.with_name(f"{target.name}.{moment}.bak")
    try:
        shutil.copy2(target, backup)
        scratch.replace(target)
    except BaseException:
        backup.unlink(missing_ok=True)
        raise
    ours = re.compile(re.escape(target.name) + r"\.\d{8}-\d{6}-\d{6}\.bak")
    backups = sorted(item for item in target.parent.iterdir() if ours.fullmatch(item.name))
    for old in backups[:-_KEPT_BACKUPS]:
        old.unlink(missing_ok=True)
    return backup


@contextmanager
def replacing(path: Path) -> Generator[TextIO]:
    """Open a file that the user names for writing; replace the old one at the end of the block.

    After a failure the old file is as it was. A new file follows the umask, a link stays a link,
    and a pipe or a device is written to directly.

    Raises:
        OSError: The file cannot be written.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8") as file:
            yield file
        return
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with scratch.open("x", encoding="utf-8") as file:
            yield file
        if target.exists():
            shutil.copymode(target, scratch)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def replace_privately(path: Path, data: str | bytes) -> None:
    """Write a private file as a whole, without a backup; text is written as UTF-8.

    Raises:
        OSError: The file or its folder cannot be written; nothing has changed then.
    """
    private_folder(path.parent)
    with _scratch_file(path, data) as scratch:
        scratch.replace(path)


@contextmanager
def _scratch_file(target: Path, data: str | bytes) -> Generator[Path]:
    """Write *data* to a private file in the folder of *target*; the body renames the file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def keep_text(path: Path, text: str) -> None:
    """Write a private file as a whole; ignore failures, because the file is not essential."""
    with suppress(OSError):
        replace_privately(path, text)


def private_folder(path: Path) -> Path:
    """Create a folder and its missing parents with the mode 0700, and return *path*.

    An existing folder gets this mode, too, unless it is a shared one such as ``/tmp``.

    Raises:
        OSError: The folder cannot be created.
    """
    if not path.parent.exists():
        private_folder(path.parent)
    path.mkdir(_FOLDER_MODE, exist_ok=True)
    _restrict(path, _FOLDER_MODE)
    return path


def restrict(path: Path) -> None:
    """Make a file, or a folder and its contents, accessible to the owner only; skip links."""
    if path.is_symlink():
        return
    is_folder = path.is_dir()
    _restrict(path, _FOLDER_MODE if is_folder else FILE_MODE)
    if is_folder:
        with suppress(OSError):
            for child in path.iterdir():
                restrict(child)


def write_private(path: Path, data: str | bytes) -> None:
    """Write a file that only its owner can read; text is written as UTF-8.

    Raises:
        OSError: The file cannot be written.
    """
    with open_private(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def open_private(path: Path) -> IO[bytes]:
    """Create or truncate a file that only its owner can read, and open it for writing.

    Raises:
        OSError: The file cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)  # Windows
    file = os.fdopen(os.open(path, flags, FILE_MODE), "wb")
    _restrict(path, FILE_MODE)  # an existing file has kept its mode
    return file


def _restrict(path: Path, mode: int) -> None:
    with suppress(OSError):  # the file of another user, or a file system without modes
        current = S_IMODE(path.stat().st_mode)
        if current & 0o077 and not current & S_ISVTX:
            path.chmod(mode)


def file_stamp(path: Path) -> FileStamp:
    """Return a value that changes with the content of a file; None if there is no file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0, 0, 0  # the file may exist: reading it gives the reason
    return status.st_mtime_ns, status.st_size, status.st_ino
