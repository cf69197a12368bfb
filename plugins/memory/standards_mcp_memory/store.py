"""Run calls of Qdrant in threads: the base of both stores, and the store on a server."""

from __future__ import annotations

import asyncio
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar, TypeVarTuple

import anyio
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ApiError, TimedOutError, may_use_proxy

if TYPE_CHECKING:
    from .database import Database

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_THREADS: Final = 16
_DENIED_STATUSES: Final = (401, 403)


class Store(ABC):
    """Runs jobs on a database in threads of its own, because Qdrant's client blocks.

    A job that outlives its call keeps its thread. The number of threads is limited, so if a server
    never ends its answers, later jobs wait for a thread in vain, and time out.

    Args:
        name: The subject of messages, with the folder or the address.
        timeout: Seconds for one job.
        threads: The most jobs at a time.
    """

    _database: Database | None = None

    def __init__(self, name: str, timeout: float, threads: int) -> None:
        self.name, self._timeout = name, timeout
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="memory-store")

    async def run(self, collection: str, job: Callable[[Database, *Ts], T], *args: *Ts) -> T:
        """Open the database if it is closed, run a job with *args*, and return its result.

        Args:
            collection: The name of the collection that the job uses; "" for none.

        Raises:
            ApiError: The store cannot be reached or opened.
            TimedOutError: The store does not answer in time.
            MissingCollectionError: The collection does not exist.
        """

        def run_job() -> T:
            database = self._database
            assert database is not None  # noqa: S101  - `_open` has opened it
            with self._translate_errors(), database.missing_collection_errors(collection):
                return job(database, *args)

        async with self.held():
            try:
                await self._open()
                with anyio.fail_after(self._timeout):
                    return await self._in_thread(run_job)
            except TimeoutError:
                raise TimedOutError(
                    f"{self.name} did not answer within {self._timeout:g} s. Try again, or "
                    "set [plugins.memory] timeout."
                ) from None

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Keep other programs from writing between the jobs of this context, if possible."""
        yield

    @abstractmethod
    async def aclose(self) -> None:
        """Close the store."""

    @abstractmethod
    async def _open(self) -> None:
        """Open the database, unless it is open."""

    @abstractmethod
    def _translate_errors(self) -> AbstractContextManager[None]:
        """Raise errors of the client as errors with a message for users."""

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


class RemoteStore(Store):
    """A Qdrant server. The first call opens the client."""

    def __init__(self, url: str, key: SecretStr | None, timeout: float) -> None:
        super().__init__(f"The memory store at {url}", timeout, _THREADS)
        self._url, self._key = url, key
        self._opening = anyio.Lock()

    @override
    async def aclose(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._database is not None:
            await asyncio.to_thread(self._database.client.close)

    @override
    async def _open(self) -> None:
        async with self._opening:
            if self._database is None:
                self._database = await asyncio.to_thread(self._connect)

    def _connect(self) -> Database:
        from .database import Database  # noqa: PLC0415  - takes seconds

        # The settings refuse an unencrypted key, except for this machine.
        warnings.filterwarnings("ignore", "Api key is used with an insecure", UserWarning)
        return Database.open(
            url=self._url,
            api_key=self._key.get_secret_value() if self._key else None,
            timeout=math.ceil(self._timeout),
            check_compatibility=False,
            trust_env=may_use_proxy(self._url),
        )

    @override
    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        import httpx  # noqa: PLC0415  - as the client
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse  # noqa: PLC0415
        from qdrant_client.http.exceptions import (  # noqa: PLC0415
            ResponseHandlingException,
            UnexpectedResponse,
        )

        try:
            yield
        except ResourceExhaustedResponse as error:
            cause = f"{self.name} limits the rate of requests."
            raise ApiError(cause, retry_after=error.retry_after_s) from None
        except UnexpectedResponse as error:
            status = error.status_code or 0
            cause = f"answered {status}. Check [plugins.memory] url, and the server's log."
            if status in _DENIED_STATUSES:
                cause = f"refuses the key ({status}). Check [plugins.memory] api_key."
            raise ApiError(f"{self.name} {cause}", status=status) from None
        except (ResponseHandlingException, ValueError, AssertionError, RecursionError) as error:
            source = error.source if isinstance(error, ResponseHandlingException) else error
            if isinstance(source, httpx.TimeoutException):
                raise TimeoutError from None  # `run` has the message
            # The other errors are from invalid answers.
            cause = "does not answer as Qdrant does. Check [plugins.memory] url."
            if isinstance(source, httpx.TransportError):
                cause = (
                    f"cannot be reached ({type(source).__name__}). Check [plugins.memory] url, and "
                    "whether the server runs."
                )
            raise ApiError(f"{self.name} {cause}") from None
