"""What the commands share: memories at hand, and names of collections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import anyio
import click

from standards_mcp import InvalidInputError
from standards_mcp_memory.arguments import check_name
from standards_mcp_memory.service import Memory, open_memory
from standards_mcp_memory.settings import MemorySettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where memories are."""

    settings: MemorySettings
    state_dir: Path

    def run(self, work: Callable[[Memory], Awaitable[T]]) -> T:
        """Return what work with the memories returns."""

        async def run() -> T:
            async with open_memory(self.settings, self.state_dir) as memory:
                return await work(memory)

        return anyio.run(run)


def named(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """Check the name of a collection that was given."""
    try:
        return None if name is None else check_name(name)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


collection: Final = click.argument("collection", callback=named)


def check_kept(settings: MemorySettings) -> None:
    """Check that what a command writes outlives it.

    Raises:
        InvalidInputError: The store is in memory.
    """
    if settings.url is None and settings.path == ":memory:":
        raise InvalidInputError(
            "Nothing would be kept: [plugins.memory] path is :memory:. Name a folder."
        )
