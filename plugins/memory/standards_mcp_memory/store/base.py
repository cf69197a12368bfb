"""The interface of both stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from standards_mcp_memory.records import Document, Point, Vectors

from . import collections as collection_jobs
from . import points as point_jobs
from .collections import Collection

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")
Job: TypeAlias = "Callable[[QdrantClient], T]"


class Store(ABC):
    """Runs jobs on Qdrant's client in a thread, since the client blocks.

    Attributes:
        place: Where the store is, without secrets.
    """

    place: str

    @abstractmethod
    async def run(self, job: Job[T]) -> T:
        """Return what a job returns.

        Raises:
            ApiError: The store cannot be reached or opened.
            TimedOutError: It does not answer in time.
            NotFoundError: The job looks for what is not there.
        """

    async def search(
        self, collection: Collection, vector: Vectors, query: str, limit: int
    ) -> point_jobs.Hits:
        """Return the memories that are nearest to a query; *vector* is that of the query.

        Raises:
            MissingCollectionError: There is no such collection.
            ToolError: The store fails.
        """
        if collection.has_words:
            return await self.run(
                lambda client: self._search(client, collection.name, vector, query, limit)
            )
        return await self.run(
            lambda client: point_jobs.search(client, collection.name, vector, limit)
        )

    async def upsert(self, collection: Collection, points: Sequence[Point]) -> None:
        """Write memories, in place of those with their ids.

        Raises:
            ToolError: The store fails.
        """

        def write(client: QdrantClient) -> None:
            with self._changing(collection.name) as changed:
                point_jobs.upsert(client, collection, points)
                changed.extend(Document(each.id, each.payload) for each in points)

        await self.run(write)

    async def insert(self, collection: Collection, points: Sequence[Point]) -> dict[int, Document]:
        """Write memories whose ids are free, and return the memories that have these ids now.

        Raises:
            ToolError: The store fails.
        """

        def write(client: QdrantClient) -> dict[int, Document]:
            with self._changing(collection.name) as changed:
                stored = point_jobs.insert(client, collection, points)
                changed.extend(stored.values())
                return stored

        return await self.run(write)

    async def delete(self, collection: str, ids: Sequence[int]) -> list[int]:
        """Delete memories, and return the ids that existed.

        Raises:
            MissingCollectionError: There is no such collection.
            ToolError: The store fails.
        """

        def delete(client: QdrantClient) -> list[int]:
            with self._changing(collection) as changed:
                deleted = point_jobs.delete(client, collection, ids)
                changed.extend(deleted)
                return deleted

        return await self.run(delete)

    async def create(self, collection: Collection) -> None:
        """Make a collection.

        Raises:
            InvalidInputError: The store does not accept its name.
            ToolError: The store fails.
        """
        await self.run(lambda client: collection_jobs.create(client, collection))

    async def drop(self, collection: str) -> None:
        """Delete a collection with its memories.

        Raises:
            ToolError: The store fails.
        """

        def drop(client: QdrantClient) -> None:
            with self._changing(collection):
                collection_jobs.drop(client, collection)

        await self.run(drop)

    def _search(
        self, client: QdrantClient, name: str, vector: Vectors, query: str, limit: int
    ) -> point_jobs.Hits:
        return point_jobs.search_server(client, name, vector, query, limit)

    @contextmanager
    def _changing(self, collection: str) -> Generator[list[Document | int]]:  # noqa: ARG002  - for embedded stores
        """Collect the memories that a job writes, and the ids that it deletes."""
        yield []

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Keep other programs from writing between the jobs of this context, where that can be."""
        yield

    @abstractmethod
    async def aclose(self) -> None:
        """Close what is open."""
