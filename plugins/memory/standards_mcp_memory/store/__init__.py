"""The interface of both Qdrant stores: embedded in a folder, or a server."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar

import anyio

from standards_mcp import TimedOutError
from standards_mcp_memory.records import Document, Vectors

from . import points as point_jobs
from .collections import Collection
from .points import Hits

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

P = ParamSpec("P")
T = TypeVar("T")
Changes: TypeAlias = Mapping[int, Document | None] | None
"""The memories that a job wrote, None for deleted ones; None for a job on a whole collection."""
ChangesT = TypeVar("ChangesT", bound=Changes)


class Store(ABC):
    """Runs jobs on Qdrant's client in threads of its own, because the client blocks.

    A job that outlives its call keeps its thread. So the threads stay few, even if a server never
    ends its answers: later jobs wait for one in vain, and time out.

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

        Raises:
            ApiError: The store cannot be reached or opened.
            TimedOutError: It does not answer in time.
            NotFoundError: The job needs a missing collection or memory.
        """

        def translated() -> T:
            assert self._client is not None  # noqa: S101  - `_open` has opened it
            with self._translated():
                return job(self._client, *args, **kwargs)

        async with self.held():
            try:
                await self._open()
                with anyio.fail_after(self._timeout):
                    return await self._in_thread(translated)
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
        """Run a job that changes a collection, and return the changes.

        Raises:
            ToolError: See `run`.
        """
        return await self.run(job, collection, *args, **kwargs)

    async def search(self, collection: Collection, vector: Vectors, query: str, limit: int) -> Hits:
        """Return the memories that are nearest to a query; *vector* is its embedding.

        Raises:
            ToolError: See `run`.
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
        """Set the client, if it is not open."""

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """Convert the errors of the client for users."""

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)
