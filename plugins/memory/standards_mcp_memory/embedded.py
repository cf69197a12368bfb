"""An embedded store in a folder: opened by the first call, closed when idle."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import warnings
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from json import JSONDecodeError
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING

import anyio
from filelock import FileLock
from typing_extensions import override

from standards_mcp import ApiError, StandardsMcpError
from standards_mcp.files import private_folder, restrict

from .folder import LOCK_NAME, lock_folder
from .settings import IN_MEMORY, MemorySettings
from .store import Store

if TYPE_CHECKING:
    from .database import Database


# In local mode, the asynchronous client would block the event loop.
# qdrant-edge-py searches faster, but is before 1.0 and takes 37 s to optimise 21,000 points.
class EmbeddedStore(Store):
    """Qdrant in this process. One thread uses it, because its searches are not thread-safe.

    Args:
        path: The folder, or ``:memory:``.
    """

    def __init__(self, settings: MemorySettings, path: str) -> None:
        super().__init__(f"The memory store in {path}", settings.timeout, threads=1)
        self._folder = None if path == IN_MEMORY else Path(path)
        self._settings = settings
        self._active_calls = 0
        self._is_closed = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._lock = FileLock(Path(path, LOCK_NAME))

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
            if self._active_calls == 0 and self._folder and not self._is_closed:
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
        def open_database() -> None:
            with self._translate_errors():
                if self._database is None:
                    self._database = self._open_folder(deadline)

        lock_wait = self._settings.lock_wait
        deadline = time.monotonic() + lock_wait
        # The thread may still run the job of an earlier call that timed out.
        with anyio.fail_after(lock_wait + self._timeout):
            await self._in_thread(open_database)

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

    def _close_if_idle(self) -> None:
        if self._active_calls == 0:
            self._threads.submit(self._close)

    def _open_folder(self, deadline: float) -> Database:
        from .database import Database, return_memory  # noqa: PLC0415  - takes seconds

        # Above 20,000 points the client recommends a server; docs/benchmarks.md has measurements.
        warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)
        folder = self._folder
        if folder is None:
            return Database.open(location=IN_MEMORY)
        # Qdrant makes its files readable for all users.
        folder = private_folder(folder).resolve()
        restrict(folder)
        with ExitStack() as on_failure:
            try:
                lock_folder(folder, self._lock, deadline)
                on_failure.callback(self._lock.release)
                database = Database.open(folder)
            except TimeoutError:
                raise self._in_use_error() from None
            except (StandardsMcpError, OSError, RuntimeError, sqlite3.Error):
                raise
            except Exception as error:  # damaged files cause errors of nearly any type
                raise self._unusable_error(f"{type(error).__name__}: {error}") from error
            on_failure.pop_all()
        return_memory()
        return database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            from .database import return_memory  # noqa: PLC0415  - imported with the database

            try:
                database.client.close()
            finally:
                self._lock.release()
                return_memory()

    def _unusable_error(self, cause: object) -> ApiError:
        return ApiError(f"{self.name} cannot be used: {cause}. Check [plugins.memory] path.")

    def _in_use_error(self) -> ApiError:
        return ApiError(
            f"{self.name} is in use by another process. Try again when that process has been idle "
            "for [plugins.memory] idle_close seconds, close it, or share a Qdrant server by url."
        )
