"""An embedded store in a folder: opened by the first call, closed when idle."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from filelock import FileLock, Timeout
from typing_extensions import override

from standards_mcp import ApiError, TimedOutError
from standards_mcp_memory.process_memory import return_memory
from standards_mcp_memory.records import Document, Vectors
from standards_mcp_memory.settings import IN_MEMORY, MemorySettings

from . import Job, Store
from .collections import Collection
from .points import Hits, read_all, search_embedded
from .words import WordIndex

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")
_POLL: Final = 0.05
_LOCK: Final = "standards-mcp.lock"


# The asynchronous client would block the event loop here, with the same answers and errors.
# qdrant-edge-py searches faster, but is before 1.0 and takes 37 s to optimise 21,000 points.
class EmbeddedStore(Store):
    """Qdrant in this process. One thread uses it, because its searches are not thread-safe.

    Args:
        path: The folder, or ``:memory:``.
    """

    def __init__(self, settings: MemorySettings, path: str) -> None:
        self.place = path
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memory-store")
        self._calls = 0
        self._is_closed = False
        self._closing: asyncio.TimerHandle | None = None
        self._client: QdrantClient | None = None
        # By name of the collection. Only the thread changes it.
        self._words: dict[str, WordIndex] = {}
        # Qdrant locks the folder only after it has read it, so a waiting program would miss the
        # writes of the other one. This lock is taken before Qdrant reads the folder.
        self._lock = FileLock(Path(path, _LOCK))

    @override
    async def run(self, job: Job[T]) -> T:
        until = time.monotonic() + self._settings.lock_wait
        async with self.held():
            try:
                # The thread may still run the job of an earlier call that timed out.
                with anyio.fail_after(self._settings.lock_wait + self._settings.timeout):
                    await self._in_thread(lambda: self._open(until))
                with anyio.fail_after(self._settings.timeout):
                    return await self._in_thread(lambda: self._run(job))
            except TimeoutError:
                raise TimedOutError(
                    f"The memory store in {self.place} did not answer within "
                    f"{self._settings.timeout:g} s. Try again, or set [plugins.memory] timeout."
                ) from None

    @override
    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        self._calls += 1
        if self._closing is not None:
            self._closing.cancel()
        try:
            yield
        finally:
            self._calls -= 1
            self._close_later()

    @override
    async def aclose(self) -> None:
        self._is_closed = True
        if self._closing is not None:
            self._closing.cancel()
        await self._in_thread(self._close)
        await asyncio.to_thread(self._thread.shutdown)

    @override
    async def create(self, collection: Collection) -> None:
        await super().create(collection)
        if self.place != IN_MEMORY:
            await self._in_thread(lambda: _make_private(Path(self.place)))

    @override
    async def search(self, collection: Collection, vector: Vectors, query: str, limit: int) -> Hits:
        if collection.has_words and collection.name not in self._words:
            # A large index takes seconds to make, so this is a job with its own deadline.
            await self.run(lambda client: self._index(client, collection.name))
        return await super().search(collection, vector, query, limit)

    @override
    def _search(
        self, client: QdrantClient, name: str, vector: Vectors, query: str, limit: int
    ) -> Hits:
        index = self._index(client, name)
        return search_embedded(client, name, vector, query, limit, index)

    def _index(self, client: QdrantClient, name: str) -> WordIndex:
        if name not in self._words:
            self._words[name] = WordIndex(read_all(client, name))
            return_memory()
        return self._words[name]

    @override
    @contextmanager
    def _changing(self, collection: str) -> Generator[list[Document | int]]:
        # The index is dropped first, because a failed job may have written some of its points.
        index = self._words.pop(collection, None)
        changed: list[Document | int] = []
        yield changed
        if index is not None and changed:
            for item in changed:
                if isinstance(item, Document):
                    index.put(item)
                else:
                    index.remove(item)
            self._words[collection] = index

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _close_later(self) -> None:
        if self._calls == 0 and self.place != IN_MEMORY and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._closing = loop.call_later(self._settings.idle_close, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._calls == 0:
            self._thread.submit(self._close)

    def _run(self, job: Job[T]) -> T:
        assert self._client is not None  # noqa: S101  - `run` has opened it
        with _translated(self.place):
            return job(self._client)

    def _open(self, until: float) -> None:
        if self._client is not None:
            return
        with _translated(self.place):
            self._client = (
                _client(self.place) if self.place == IN_MEMORY else self._open_folder(until)
            )

    def _open_folder(self, until: float) -> QdrantClient:
        make_folder(Path(self.place))
        _make_private(Path(self.place))
        try:
            self._lock.acquire(timeout=max(0.0, until - time.monotonic()), poll_interval=_POLL)
        except Timeout:
            raise _in_use(self.place) from None
        try:
            _wait_for(Path(self.place), until)
            return self._read()
        except BaseException:
            self._lock.release()
            raise

    def _read(self) -> QdrantClient:
        meta, collections = Path(self.place, "meta.json"), Path(self.place, "collection")
        is_new = not collections.is_dir() or not any(collections.iterdir())
        if is_new and meta.exists() and meta.stat().st_size == 0:
            meta.unlink()  # from a process that was killed while it created the store
        try:
            _finish_deletions(Path(self.place))
            client = _client(self.place)
        except (OSError, RuntimeError, sqlite3.Error):
            raise
        except Exception as error:  # damaged files cause errors of nearly any type
            raise _unusable(self.place, f"{type(error).__name__}: {error}") from error
        return_memory()
        return client

    def _close(self) -> None:
        client, self._client = self._client, None
        self._words.clear()
        if client is not None:
            try:
                client.close()
            finally:
                self._lock.release()
                return_memory()


def _client(path: str) -> QdrantClient:
    from qdrant_client import QdrantClient  # noqa: PLC0415  - takes seconds

    # Above 20,000 points the client recommends a server; docs/benchmarks.md has measurements.
    warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
    if path == IN_MEMORY:
        return QdrantClient(path, force_disable_check_same_thread=True)
    return QdrantClient(path=path, force_disable_check_same_thread=True)


def _wait_for(folder: Path, until: float) -> None:
    """Wait for another program of Qdrant, which does not know the lock of this plugin."""
    while _is_locked(folder):
        if time.monotonic() > until:
            raise _in_use(str(folder))
        time.sleep(_POLL)


def _is_locked(folder: Path) -> bool:
    import portalocker  # noqa: PLC0415  - comes with qdrant-client

    try:
        with (folder / ".lock").open("r+") as file:
            flags = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
            portalocker.lock(file, flags)
            portalocker.unlock(file)
    except FileNotFoundError:
        return False
    except portalocker.exceptions.LockException:
        return True
    return False


@contextmanager
def _translated(place: str) -> Generator[None]:
    """Convert the errors of the client and the file system for users."""
    try:
        yield
    except RuntimeError as error:
        if "already accessed" not in str(error):
            raise
        raise _in_use(place) from None
    except (OSError, sqlite3.Error, JSONDecodeError, UnpicklingError) as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise _unusable(place, cause) from error


def _unusable(place: str, cause: object) -> ApiError:
    return ApiError(
        f"The memory store in {place} cannot be used: {cause}. Check [plugins.memory] path."
    )


def _in_use(place: str) -> ApiError:
    return ApiError(
        f"The memory store in {place} is in use by another process. Try again when that has been "
        "idle for [plugins.memory] idle_close seconds, close it, or share a Qdrant server by url."
    )


def _finish_deletions(folder: Path) -> None:
    """Finish deletions of collections that a kill interrupted.

    The client deletes the files of a collection before its entry. At the next start it would create
    the collection again, empty.

    Raises:
        Exception: The list of collections is damaged; errors of nearly any type are possible.
    """
    file = folder / "meta.json"
    if not file.exists():
        return
    meta: dict[str, Any] = json.loads(file.read_text("utf-8"))
    gone = {name for name in meta["collections"] if _is_gone(folder / "collection" / name)}
    if not gone:
        return
    aliases = {alias: name for alias, name in meta["aliases"].items() if name not in gone}
    tables = {
        key: {name: value for name, value in meta.get(key, {}).items() if name not in gone}
        for key in ("collections", "text_indexes")
    }
    written = file.with_suffix(".tmp")
    written.write_text(json.dumps({**meta, **tables, "aliases": aliases}), "utf-8")
    written.replace(file)


def _is_gone(collection: Path) -> bool:
    # SQLite's own temporary files do not count. Older clients use another name for the database.
    return all(file.name.startswith("storage.sqlite-") for file in collection.glob("*"))


_FOLDER: Final = 0o700
_FILE: Final = 0o600


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, readable for the owner only.

    Raises:
        OSError: It cannot be created.
    """
    if not folder.parent.exists():  # mkdir would create parents with the default mode
        make_folder(folder.parent)
    folder.mkdir(_FOLDER, exist_ok=True)


def _make_private(folder: Path) -> None:
    """Let only the owner read a store; Qdrant makes its files readable for all users.

    Files of another owner stay as they are, because only their owner may change them.
    """
    for path in (folder, *folder.rglob("*")):
        with suppress(PermissionError, FileNotFoundError):
            if not path.is_symlink():
                path.chmod(_FOLDER if path.is_dir() else _FILE)
