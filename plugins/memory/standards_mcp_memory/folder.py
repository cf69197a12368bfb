"""The folder of an embedded store: its lock, and what a killed process left undone in it.

<path>/standards-mcp.lock        held by the process that has the store open
<path>/.lock                     Qdrant's own lock
<path>/meta.json                 Qdrant's list of collections
<path>/collection/<name>/        a collection of Qdrant, with a SQLite database
<path>/restored/                 a complete copy that takes the place of the store, see `restore`
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from standards_mcp.files import restrict

LOCK_NAME: Final = "standards-mcp.lock"
META_NAME: Final = "meta.json"
COLLECTIONS_NAME: Final = "collection"
RESTORED_NAME: Final = "restored"
_POLL_SECONDS: Final = 0.05


def lock_folder(folder: Path, lock: FileLock, deadline: float) -> None:
    """Take the lock of a store, and complete what a killed process left undone.

    Qdrant locks the folder only after it has read it, so a waiting program would miss the writes of
    the other one. This lock is taken before Qdrant reads the folder.

    Args:
        lock: The lock at `LOCK_NAME`; it is free again if this function raises.
        deadline: The time of `time.monotonic` at which waiting for another program ends.

    Raises:
        TimeoutError: Another program has the store open.
        Exception: The store is damaged; errors of nearly any type are possible.
    """
    wait = max(0.0, deadline - time.monotonic())
    lock.acquire(timeout=wait, poll_interval=_POLL_SECONDS)
    try:
        _wait_for_others(folder, deadline)
        _finish_restore(folder)
        _repair(folder)
    except BaseException:
        lock.release()
        raise


def restore(folder: Path, copy: Path) -> None:
    """Replace the store in *folder*, whose lock is held, by a copy.

    A process that is killed before the rename leaves the old store. After it, the store is the
    copy, because the next process that takes the lock completes the work.

    Args:
        copy: A folder with `meta.json` and `collection`, which may be on another disk.
    """
    staged = folder / f"{RESTORED_NAME}.partial"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(copy, staged)
    restrict(staged)
    for path in staged.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
    staged.rename(folder / RESTORED_NAME)
    _finish_restore(folder)


def _finish_restore(folder: Path) -> None:
    """Move a complete copy to the place of the store; each step can be repeated after a kill."""
    restored = folder / RESTORED_NAME
    if not restored.is_dir():
        return
    if (collections := restored / COLLECTIONS_NAME).is_dir():
        shutil.rmtree(folder / COLLECTIONS_NAME, ignore_errors=True)
        collections.rename(folder / COLLECTIONS_NAME)
    with suppress(FileNotFoundError):
        (restored / META_NAME).replace(folder / META_NAME)
    shutil.rmtree(restored)  # an archive may have other files


def _wait_for_others(folder: Path, deadline: float) -> None:
    """Wait for other programs of Qdrant, which do not know the lock of this plugin.

    Raises:
        TimeoutError: Another program has the folder open at the deadline.
    """
    import portalocker  # noqa: PLC0415  - comes with qdrant-client

    wait = max(0.0, deadline - time.monotonic())
    lock = portalocker.Lock(folder / ".lock", "r+", timeout=wait, check_interval=_POLL_SECONDS)
    try:
        with suppress(FileNotFoundError), lock:
            pass
    except portalocker.LockException:
        raise TimeoutError from None


def _repair(folder: Path) -> None:
    """Complete the creation of the store, or deletions of collections, by a killed process.

    The client deletes the files of a collection before its entry in ``meta.json``. At the next
    start, it would create the collection again, empty.

    Raises:
        Exception: The list of collections is damaged; errors of nearly any type are possible.
    """
    file, collections = folder / META_NAME, folder / COLLECTIONS_NAME
    if not file.exists():
        return
    if file.stat().st_size == 0 and not (collections.is_dir() and any(collections.iterdir())):
        file.unlink()
        return
    meta: dict[str, Any] = json.loads(file.read_text("utf-8"))
    # SQLite's own temporary files do not count. Older clients name the database differently.
    deleted = {
        name
        for name in meta["collections"]
        if all(path.name.startswith("storage.sqlite-") for path in (collections / name).glob("*"))
    }
    if deleted:
        for table in (meta["collections"], meta.get("text_indexes", {})):
            for name in deleted & table.keys():
                del table[name]
        new_file = file.with_suffix(".tmp")
        new_file.write_text(json.dumps(meta), "utf-8")
        new_file.replace(file)
