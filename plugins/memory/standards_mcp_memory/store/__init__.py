"""Base class of both Qdrant stores, and the store on a server. `embedded` has the other store."""

from __future__ import annotations

import asyncio
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

import anyio
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ApiError, TimedOutError, may_use_proxy
from standards_mcp_memory.records import Document, Vectors

from . import points as point_jobs
from .collections import Collection, missing_collection_errors
from .points import Hits

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

P = ParamSpec("P")
T = TypeVar("T")
Changes: TypeAlias = Mapping[int, Document | None] | None
"""Written memories by id, with None for deleted ones; None if a whole collection was changed."""
ChangesT = TypeVar("ChangesT", bound=Changes)
_THREADS: Final = 16
_DENIED_STATUSES: Final = (401, 403)


class Store(ABC):
    """Runs jobs on Qdrant's client in threads of its own, because the client blocks.

    A job that outlives its call keeps its thread. The number of threads is limited, so if a server
    never ends its answers, later jobs wait for a thread in vain, and time out.

    Args:
        name: The subject of messages, with the folder or the address.
        timeout: Seconds for one job.
        threads: The most jobs at a time.
    """

    _client: QdrantClient | None = None

    def __init__(self, name: str, timeout: float, threads: int) -> None:
        self.name, self._timeout = name, timeout
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="memory-store")

    async def run(
        self, job: Callable[Concatenate[QdrantClient, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a job with these arguments, and return its result.

        The first argument of a job, if it has any, is the collection or its name.

        Raises:
            ApiError: The store cannot be reached or opened.
            TimedOutError: The store does not answer in time.
            MissingCollectionError: The collection does not exist.
        """

        def run_job() -> T:
            client, name = self._client, args[0] if args else ""
            assert client is not None  # noqa: S101  - `_open` has opened it
            with (
                self._translate_errors(),
                missing_collection_errors(client, getattr(name, "name", str(name))),
            ):
                return job(client, *args, **kwargs)

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

    async def change(
        self,
        job: Callable[Concatenate[QdrantClient, Collection, P], ChangesT],
        collection: Collection,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> ChangesT:
        """Run a job that changes a collection, and return the changes. See `run` for errors."""
        return await self.run(job, collection, *args, **kwargs)

    async def search(self, collection: Collection, vector: Vectors, query: str, limit: int) -> Hits:
        """Return the memories that are nearest to a query. See `run` for errors.

        Args:
            vector: The embedding of the query.
        """
        if collection.has_words:
            return await self.run(point_jobs.search_server, collection.name, vector, query, limit)
        return await self.run(point_jobs.search, collection.name, vector, limit)

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Keep other programs from writing between the jobs of this context, if possible."""
        yield

    @abstractmethod
    async def aclose(self) -> None:
        """Close the store."""

    @abstractmethod
    async def _open(self) -> None:
        """Open the client, unless it is open."""

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
        if self._client is not None:
            await asyncio.to_thread(self._client.close)

    @override
    async def _open(self) -> None:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)

    def _connect(self) -> QdrantClient:
        from qdrant_client import QdrantClient  # noqa: PLC0415  - takes seconds

        # The settings refuse an unencrypted key, except for this machine.
        warnings.filterwarnings("ignore", "Api key is used with an insecure", UserWarning)
        return QdrantClient(
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
