"""Replaces files that belong to the user: whole or not at all, with a copy of what was there."""

from __future__ import annotations

import difflib
import os
import shutil
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return the text of a file as it stands, line ends included; None when there is none.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8.
    """
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None


def replace_text(path: Path, text: str) -> Path | None:
    """Write *text* in place of what *path* holds and return where the old text is kept.

    A link stays a link, the file keeps its mode, and a reader sees the old text or the new one.
    A new file is readable by its owner alone, since it may hold keys.

    Raises:
        OSError: The file or its folder cannot be written; nothing has changed then.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    backup = None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, name)
            backup = _back_up(target)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        if backup:
            backup.unlink()
        raise
    return backup


def keep_text(path: Path, text: str) -> None:
    """Write a file that can do without; a reader sees the old text or the new one."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)


def diff(path: Path, before: str, after: str) -> str:
    """Return what an edit changes, as a unified diff; the lines around it may hold others' keys."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(path), str(path), n=0, lineterm=""
    )
    return "\n".join(lines)


def _back_up(target: Path) -> Path:
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    backup = target.with_name(f"{target.name}.{moment}.bak")
    shutil.copy2(target, backup)
    return backup
