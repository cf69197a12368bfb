"""The interface of both Qdrant stores: embedded in a folder, or a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from standards_mcp_memory.records import Document, Point, Vectors

from . import collections as collection_jobs
from . import points as point_jobs
from .collections import Collection
from .points import Hits

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")
Job: TypeAlias = "Callable[[QdrantClient], T]"


class Store(ABC):
    """Runs jobs on Qdrant's client in a thread, because the client blocks.

    Attributes:
        place: The folder or the address, without secrets.
    """

    place: str

    @abstractmethod
    async def run(self, job: Job[T]) -> T:
        """Run a job, and return its result.

        Raises:
            ApiError: The store cannot be reached or opened.
            TimedOutError: It does not answer in time.
            NotFoundError: The job needs a missing collection or memory.
        """

    async def search(self, collection: Collection, vector: Vectors, query: str, limit: int) -> Hits:
        """Return the memories that are nearest to a query; *vector* is its embedding.

        Raises:
            MissingCollectionError: The collection does not exist.
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
        """Write memories; they replace the ones with their ids.

        Raises:
            ToolError: The store fails.
        """

        def write(client: QdrantClient) -> None:
            with self._changing(collection.name) as changed:
                point_jobs.upsert(client, collection, points)
                changed.extend(Document(point.id, point.payload) for point in points)

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
            MissingCollectionError: The collection does not exist.
            ToolError: The store fails.
        """

        def delete(client: QdrantClient) -> list[int]:
            with self._changing(collection) as changed:
                deleted = point_jobs.delete(client, collection, ids)
                changed.extend(deleted)
                return deleted

        return await self.run(delete)

    async def create(self, collection: Collection) -> None:
        """Create a collection.

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
                client.delete_collection(collection)

        await self.run(drop)

    def _search(
        self, client: QdrantClient, name: str, vector: Vectors, query: str, limit: int
    ) -> Hits:
        return point_jobs.search_server(client, name, vector, query, limit)

    @contextmanager
    def _changing(self, collection: str) -> Generator[list[Document | int]]:  # noqa: ARG002  - for embedded stores
        """Collect the memories that a job writes, and the ids that it deletes."""
        yield []

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Keep other programs from writing between the jobs of this context, if possible."""
        yield

    @abstractmethod
    async def aclose(self) -> None:
        """Close the store."""
