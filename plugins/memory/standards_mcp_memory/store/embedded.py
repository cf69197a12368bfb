"""A store in a folder: opened by the first call, closed again when idle."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from json import JSONDecodeError
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from filelock import FileLock, Timeout
from typing_extensions import override

from standards_mcp import ApiError, TimedOutError
from standards_mcp_memory.process_memory import return_memory
from standards_mcp_memory.records import Document, Vectors
from standards_mcp_memory.settings import IN_MEMORY, MemorySettings

from . import points as point_jobs
from .base import Job, Store
from .collections import Collection
from .deletions import finish_deletions
from .permissions import make_folder, make_private
from .words import WordIndex

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")
_POLL: Final = 0.05
_LOCK: Final = "standards-mcp.lock"


class EmbeddedStore(Store):
    """Qdrant in this process. One thread has it, since its searches change what they read.

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
        # By collection. Only the thread changes it.
        self._words: dict[str, WordIndex] = {}
        # Qdrant locks the folder only after it has read it: whoever waits would miss what is
        # written meanwhile. So the folder has a lock of ours around its own.
        self._lock = FileLock(Path(path, _LOCK))

    @override
    async def run(self, job: Job[T]) -> T:
        until = time.monotonic() + self._settings.lock_wait
        async with self.held():
            try:
                # The thread may still be at what an earlier call has given up.
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
            await self._in_thread(lambda: make_private(Path(self.place)))

    @override
    async def search(
        self, collection: Collection, vector: Vectors, query: str, limit: int
    ) -> point_jobs.Hits:
        if collection.has_words and collection.name not in self._words:
            # A job of its own has a deadline of its own: a large index takes seconds to make.
            await self.run(lambda client: self._index(client, collection.name))
        return await super().search(collection, vector, query, limit)

    @override
    def _search(
        self, client: QdrantClient, name: str, vector: Vectors, query: str, limit: int
    ) -> point_jobs.Hits:
        index = self._index(client, name)
        return point_jobs.search_embedded(client, name, vector, query, limit, index)

    def _index(self, client: QdrantClient, name: str) -> WordIndex:
        if name not in self._words:
            self._words[name] = WordIndex(point_jobs.read_all(client, name))
            return_memory()
        return self._words[name]

    @override
    @contextmanager
    def _changing(self, collection: str) -> Generator[list[Document | int]]:
        # Dropped first: after a job that failed half-way, nobody knows what was written.
        index = self._words.pop(collection, None)
        changed: list[Document | int] = []
        yield changed
        if index is not None and changed:
            for each in changed:
                if isinstance(each, Document):
                    index.put(each)
                else:
                    index.remove(each)
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
        with _told(self.place):
            return job(self._client)

    def _open(self, until: float) -> None:
        if self._client is not None:
            return
        with _told(self.place):
            self._client = (
                _client(self.place) if self.place == IN_MEMORY else self._open_folder(until)
            )

    def _open_folder(self, until: float) -> QdrantClient:
        make_folder(Path(self.place))
        make_private(Path(self.place))
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
            meta.unlink()  # of a process that was killed while it made the store
        try:
            finish_deletions(Path(self.place))
            client = _client(self.place)
        except (OSError, RuntimeError, sqlite3.Error):
            raise
        except Exception as error:  # damaged files make it raise nearly anything
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

    # It advises a server from 20,000 points on; how fast this one is stands in docs/benchmarks.md.
    warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
    if path == IN_MEMORY:
        return QdrantClient(path, force_disable_check_same_thread=True)
    return QdrantClient(path=path, force_disable_check_same_thread=True)


def _wait_for(folder: Path, until: float) -> None:
    """Wait for a program that is not this plugin and has the folder open."""
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
def _told(place: str) -> Generator[None]:
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
