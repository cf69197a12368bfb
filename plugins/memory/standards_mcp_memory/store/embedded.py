"""An embedded store in a folder: opened by the first call, closed when idle."""

from __future__ import annotations

import asyncio
import ctypes
import json
import sqlite3
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Concatenate, Final

import anyio
from filelock import FileLock, Timeout
from typing_extensions import override

from standards_mcp import ApiError, StandardsMcpError
from standards_mcp_memory.records import Vectors
from standards_mcp_memory.settings import IN_MEMORY, MemorySettings

from . import ChangesT, P, Store
from .collections import Collection, count
from .points import Hits, page, search_embedded
from .words import WordIndex

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_POLL: Final = 0.05
_LOCK_NAME: Final = "standards-mcp.lock"
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600


# In local mode, the asynchronous client would block the event loop.
# qdrant-edge-py searches faster, but is before 1.0 and takes 37 s to optimise 21,000 points.
class EmbeddedStore(Store):
    """Qdrant in this process. One thread uses it, because its searches are not thread-safe.

    Args:
        path: The folder, or ``:memory:``.
    """

    def __init__(self, settings: MemorySettings, path: str) -> None:
        super().__init__(f"The memory store in {path}", settings.timeout, threads=1)
        self._path, self._settings = path, settings
        self._active_calls = 0
        self._is_closed = False
        self._close_timer: asyncio.TimerHandle | None = None
        # Word indexes by the name of the collection. Only the store's thread changes them.
        self._word_indexes: dict[str, WordIndex] = {}
        # Qdrant locks the folder only after it has read it, so a waiting program would miss the
        # writes of the other one. This lock is taken before Qdrant reads the folder.
        self._lock = FileLock(Path(path, _LOCK_NAME))

    @override
    async def change(
        self,
        job: Callable[Concatenate[QdrantClient, Collection, P], ChangesT],
        collection: Collection,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> ChangesT:
        def change(client: QdrantClient, collection: Collection) -> ChangesT:
            # The index is dropped first, because a failed job may have written some memories.
            index = self._word_indexes.pop(collection.name, None)
            changes = job(client, collection, *args, **kwargs)
            if changes is None:
                self._make_private()
            elif index is not None:
                index.change(changes)
                self._word_indexes[collection.name] = index
            return changes

        return await self.run(change, collection)

    @override
    async def search(self, collection: Collection, vector: Vectors, query: str, limit: int) -> Hits:
        if not collection.has_words:
            return await super().search(collection, vector, query, limit)
        if collection.name not in self._word_indexes:
            # A large index takes seconds to make, so this is a job with its own deadline.
            await self.run(self._word_index, collection.name)

        def search(client: QdrantClient, name: str) -> Hits:
            return search_embedded(
                client, name, vector, query, limit, self._word_index(client, name)
            )

        return await self.run(search, collection.name)

    @override
    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        self._active_calls += 1
        if self._close_timer is not None:
            self._close_timer.cancel()
        try:
            yield
        finally:
            self._active_calls -= 1
            if self._active_calls == 0 and self._path != IN_MEMORY and not self._is_closed:
                loop = asyncio.get_running_loop()
                self._close_timer = loop.call_later(self._settings.idle_close, self._close_if_idle)

    @override
    async def aclose(self) -> None:
        self._is_closed = True
        if self._close_timer is not None:
            self._close_timer.cancel()
        await self._in_thread(self._close)
        await asyncio.to_thread(self._threads.shutdown)

    @override
    async def _open(self) -> None:
        def open_client() -> None:
            with self._translate_errors():
                if self._client is None:
                    in_memory = self._path == IN_MEMORY
                    self._client = _client(self._path) if in_memory else self._open_folder(deadline)

        lock_wait = self._settings.lock_wait
        deadline = time.monotonic() + lock_wait
        # The thread may still run the job of an earlier call that timed out.
        with anyio.fail_after(lock_wait + self._timeout):
            await self._in_thread(open_client)

    @override
    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        try:
            yield
        except RuntimeError as error:
            if "already accessed" not in str(error):
                raise
            raise self._in_use_error() from None
        except (OSError, sqlite3.Error, JSONDecodeError, UnpicklingError) as error:
            cause = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise self._unusable_error(cause) from error

    def _word_index(self, client: QdrantClient, name: str) -> WordIndex:
        if name not in self._word_indexes:
            # One page, because the client sorts all ids for each page.
            documents, _ = page(client, name, None, count(client, name) or 1)
            self._word_indexes[name] = WordIndex(documents)
            return_memory()
        return self._word_indexes[name]

    def _close_if_idle(self) -> None:
        if self._active_calls == 0:
            self._threads.submit(self._close)

    def _open_folder(self, deadline: float) -> QdrantClient:
        folder = Path(self._path)
        make_folder(folder)
        self._make_private()
        try:
            self._lock.acquire(timeout=max(0.0, deadline - time.monotonic()), poll_interval=_POLL)
        except Timeout:
            raise self._in_use_error() from None
        try:
            self._wait_for_others(folder, deadline)
            _repair(folder)
            client = _client(self._path)
        except (StandardsMcpError, OSError, RuntimeError, sqlite3.Error):
            self._lock.release()
            raise
        except Exception as error:  # damaged files cause errors of nearly any type
            self._lock.release()
            raise self._unusable_error(f"{type(error).__name__}: {error}") from error
        return_memory()
        return client

    def _wait_for_others(self, folder: Path, deadline: float) -> None:
        """Wait for other programs of Qdrant, which do not know the lock of this plugin."""
        import portalocker  # noqa: PLC0415  - comes with qdrant-client

        wait = max(0.0, deadline - time.monotonic())
        lock = portalocker.Lock(folder / ".lock", "r+", timeout=wait, check_interval=_POLL)
        try:
            with suppress(FileNotFoundError), lock:
                pass
        except portalocker.LockException:
            raise self._in_use_error() from None

    def _close(self) -> None:
        client, self._client = self._client, None
        self._word_indexes.clear()
        if client is not None:
            try:
                client.close()
            finally:
                self._lock.release()
                return_memory()

    def _make_private(self) -> None:
        """Let only the owner read the store; Qdrant makes its files readable for all users.

        Files of another owner stay as they are, because only their owner may change them.
        """
        if self._path == IN_MEMORY:
            return
        for path in (Path(self._path), *Path(self._path).rglob("*")):
            with suppress(PermissionError, FileNotFoundError):
                if not path.is_symlink():
                    path.chmod(_FOLDER_MODE if path.is_dir() else _FILE_MODE)

    def _unusable_error(self, cause: object) -> ApiError:
        return ApiError(f"{self.name} cannot be used: {cause}. Check [plugins.memory] path.")

    def _in_use_error(self) -> ApiError:
        return ApiError(
            f"{self.name} is in use by another process. Try again when that process has been idle "
            "for [plugins.memory] idle_close seconds, close it, or share a Qdrant server by url."
        )


def _client(path: str) -> QdrantClient:
    from qdrant_client import QdrantClient  # noqa: PLC0415  - takes seconds

    # Above 20,000 points the client recommends a server; docs/benchmarks.md has measurements.
    warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
    if path == IN_MEMORY:
        return QdrantClient(path, force_disable_check_same_thread=True)
    return QdrantClient(path=path, force_disable_check_same_thread=True)


def _repair(folder: Path) -> None:
    """Complete the creation of the store, or deletions of collections, by a killed process.

    The client deletes the files of a collection before its entry in ``meta.json``. At the next
    start, it would create the collection again, empty.

    Raises:
        Exception: The list of collections is damaged; errors of nearly any type are possible.
    """
    file, collections = folder / "meta.json", folder / "collection"
    if not file.exists():
        return
    if file.stat().st_size == 0 and not (collections.is_dir() and any(collections.iterdir())):
        file.unlink()
        return
    meta: dict[str, Any] = json.loads(file.read_text("utf-8"))
    missing = {name for name in meta["collections"] if _is_deleted(collections / name)}
    if missing:
        for table in (meta["collections"], meta.get("text_indexes", {})):
            for name in missing & table.keys():
                del table[name]
        new_file = file.with_suffix(".tmp")
        new_file.write_text(json.dumps(meta), "utf-8")
        new_file.replace(file)


def _is_deleted(collection: Path) -> bool:
    # SQLite's own temporary files do not count. Older clients use another name for the database.
    return all(file.name.startswith("storage.sqlite-") for file in collection.glob("*"))


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, readable for the owner only.

    Raises:
        OSError: The folder cannot be created.
    """
    if not folder.parent.exists():  # mkdir would create parents with the default mode
        make_folder(folder.parent)
    folder.mkdir(_FOLDER_MODE, exist_ok=True)


def return_memory() -> None:
    """Return freed memory to the operating system, if the C library supports it."""
    # Opening a store or an encoder reads large files; their buffers would stay with the process.
    # With 20,000 memories, 60 MB.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
