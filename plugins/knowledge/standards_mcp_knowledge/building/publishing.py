"""Replace a dataset by a new one as a whole.

The new one is written into the sibling folder ``.NAME.build``, one level deeper than the manifests
that are read. A killed build leaves that folder, and the next build clears it.
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

from .dataset_files import check_replaceable
from .options import BuildError

_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE


# A mapped file that is cut short in its place ends the workers that read it, so files are never
# overwritten.
class Draft:
    """A dataset that is being made.

    Attributes:
        out: The final folder.
        folder: The folder to write; neither it nor its parent exists.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._scratch = out.with_name(f".{out.name}.build")
        self.folder = self._scratch / "new"
        self._old = self._scratch / "old"

    def publish(self) -> None:
        """Move it to its final folder; readers see the old dataset or the new one.

        Raises:
            OSError: It cannot be moved; the old one is still there.
        """
        if not self.out.exists():
            self.folder.rename(self.out)
        elif not _exchange(self.folder, self.out):
            self.out.rename(self._old)
            self.folder.rename(self.out)

    def prepare(self, identifier: str) -> None:
        """Remove the files of a killed build, and check that the old dataset may be replaced.

        Raises:
            BuildError: The final folder holds other files.
            OSError: A file cannot be removed.
        """
        self.clear()
        check_replaceable(self.out, identifier)

    def clear(self) -> None:
        """Remove the sibling folder; if no dataset was published, restore the old one."""
        if self._old.exists() and not self.out.exists():
            self._old.rename(self.out)
        if self._scratch.exists():
            shutil.rmtree(self._scratch)


@contextmanager
def drafting(out: Path, identifier: str) -> Generator[Draft]:
    """Yield the draft of a dataset, and lock its folder against other builds.

    Raises:
        BuildError: Another process builds it, or *out* holds other files or cannot be written.
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
    """Convert errors of the file system for users."""
    try:
        yield
    except (OSError, NotImplementedError) as error:  # the latter: no locks on this file system
        reason = error.strerror if isinstance(error, OSError) else None
        raise BuildError(
            f"cannot write the dataset {out}: {reason or error}; "
            "choose a folder that can be written and has space"
        ) from error


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return False if the system does not support it."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    result: int = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return result == 0
