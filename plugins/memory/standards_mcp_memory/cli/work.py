"""What the commands share: memories at hand, and how answers are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
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
as_json: Final = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


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


def tell(found: object, shown: Callable[[], str], *, is_json: bool) -> None:
    """Print a value as JSON, or what people read of it."""
    click.echo(json.dumps(found, ensure_ascii=False) if is_json else shown())


def check_kept(settings: MemorySettings) -> None:
    """Check that what a command writes outlives it.

    Raises:
        InvalidInputError: The store is in memory.
    """
    if settings.url is None and settings.path == ":memory:":
        raise InvalidInputError(
            "Nothing would be kept: [plugins.memory] path is :memory:. Name a folder."
        )


@contextmanager
def progress_of(label: str) -> Generator[Callable[[int, int], None]]:
    """Give what is told how many are done: a bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield progress
