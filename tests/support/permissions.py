"""Folders that nobody may write."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65534
needs_permissions = pytest.mark.skipif(
    os.name != "posix", reason="takes rights away as POSIX systems do"
)


@contextmanager
def not_writable(folder: Path) -> Generator[None]:
    """Let everybody read and nobody write what is below *folder*, not even root."""
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for path in paths:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
