"""Puts a new dataset in the place of an old one, as a whole.

It is written into a folder beside its place, ``.NAME.build``, one level deeper than datasets are
looked for. A build that was killed leaves that folder; the next one clears it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import filelock

from .options import BuildError
from .previous import check_replaceable

_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE


class Draft:
    """A dataset that is being made.

    Attributes:
        out: Where it will be.
        folder: Where to write it; neither it nor its parent is there.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._scratch = out.with_name(f".{out.name}.build")
        self.folder = self._scratch / "new"
        self._old = self._scratch / "old"

    def publish(self) -> None:
        """Put it in its place; readers see the old dataset or the new one.

        Raises:
            OSError: It cannot be put there; the old one still is.
        """
        if not self.out.exists():
            self.folder.rename(self.out)
        elif not _exchange(self.folder, self.out):
            self.out.rename(self._old)
            self.folder.rename(self.out)

    def prepare(self, identifier: str) -> None:
        """Clear what a killed build has left, for the dataset with this id.

        Raises:
            BuildError: What is in its place may not be replaced.
            OSError: Something cannot be removed.
        """
        self.clear()
        check_replaceable(self.out, identifier)

    def clear(self) -> None:
        """Remove all but the dataset in its place, which is the old one if there is no new one."""
        if self._old.exists() and not self.out.exists():
            self._old.rename(self.out)
        if self._scratch.exists():
            shutil.rmtree(self._scratch)


@contextmanager
def drafting(out: Path, identifier: str) -> Generator[Draft]:
    """Let one process at a time make the dataset with this id in the folder *out*.

    Raises:
        BuildError: Another process does, *out* holds something else, or cannot be written.
    """
    out = out.expanduser().resolve()
    draft = Draft(out)
    with _locked(out):
        with writing(out):
            draft.prepare(identifier)
        try:
            yield draft
        finally:
            with suppress(OSError):  # the next build tries again
                draft.clear()


@contextmanager
def _locked(out: Path) -> Generator[None]:
    lock = filelock.FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise BuildError(f"another build is writing {out}; try again when it is done") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def writing(out: Path) -> Generator[None]:
    """Turn what the system says into an error for the user."""
    try:
        yield
    except (OSError, NotImplementedError) as error:  # the latter: no locks on this file system
        reason = error.strerror if isinstance(error, OSError) else None
        raise BuildError(
            f"cannot write the dataset {out}: {reason or error}; "
            "choose a folder that can be written and has space"
        ) from error


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders swap their places at once; return False where the system cannot do it."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    result: int = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return result == 0
