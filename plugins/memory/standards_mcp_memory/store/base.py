"""What a store is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from standards_mcp import NotFoundError
from standards_mcp_memory.texts.markdown import no_collection

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")
Job: TypeAlias = "Callable[[QdrantClient], T]"


class MissingCollectionError(NotFoundError):
    """There is no such collection.

    Args:
        names: Those that there are.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.names = list(names)
        super().__init__(no_collection(name, names))


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

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Keep other programs from writing between the jobs of this context, where that can be."""
        yield

    @abstractmethod
    async def aclose(self) -> None:
        """Close what is open."""
