"""What an encoder is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeAlias

from standards_mcp_memory.records import Vectors

Kind: TypeAlias = Literal["query", "document"]


class Encoder(ABC):
    """Turns texts into vectors of length 1."""

    @abstractmethod
    async def name(self) -> str:
        """Return the name of its model: equal names mean vectors that can be compared.

        Raises:
            ApiError: It cannot be opened.
        """

    @abstractmethod
    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a row for each text; there is one text at least.

        Raises:
            ApiError: It fails.
            TimedOutError: It does not answer in time.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close what is open."""
