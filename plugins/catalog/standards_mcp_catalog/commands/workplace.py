"""The objects of the ``data`` commands, the completions of their arguments, and their progress."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from standards_mcp.commands import counted, print_text, progress_lines
from standards_mcp_catalog.backends import open_embedded
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.settings import CatalogSettings

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.report import Report
    from standards_mcp_catalog.importing.web import Web
    from standards_mcp_catalog.local.catalog import LocalCatalog

_REDRAW_SECONDS = 0.1


@dataclass
class Workplace:
    """Settings and stores for the commands; a store is opened when a command needs it.

    Attributes:
        configured: Returns the catalog that searches use.
        state_folder: Returns the folder of the plugin's state.
        progress: Returns a context that shows the progress of a command.
        web: The HTTP client for addresses, if not the usual one.
    """

    settings: CatalogSettings
    configured: Callable[[], Catalog]
    state_folder: Callable[[], Path]
    progress: Callable[[], ProgressLine] = lambda: ProgressLine()  # noqa: PLW0108  - it is below
    web: Web | None = None

    @cached_property
    def embedded(self) -> LocalCatalog:
        """The embedded catalog, even if searches use another backend."""
        return open_embedded(self.settings)

    def close(self) -> None:
        """Close the embedded catalog."""
        if "embedded" in vars(self):
            anyio.run(self.embedded.aclose)


def loaded_sets(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the id and a description of each loaded standard set."""
    for each in workplace.embedded.store.sets():
        yield each.id, each.description


def loaded_sets_and_crosswalks(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the id and a description of each loaded standard set and crosswalk."""
    yield from loaded_sets(workplace)
    for each, _ in workplace.embedded.store.database.relations.crosswalks():
        yield each


def loaded_jurisdictions(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the title of each loaded jurisdiction and its number of sets."""
    counts = Counter(each.jurisdiction_title for each in workplace.embedded.store.sets())
    for title, count in counts.items():
        yield title, counted(count, "set")


class ProgressLine(ExitStack):
    """The progress of a command, shown on one line of stderr until the block ends.

    Without a terminal, a new line is printed every ten seconds. A call shows the progress of
    embedding, see `standards_mcp_catalog.base.Progress`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._began = self._shown_at = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._of_total, self._state, self._width = "", "Working", 0
        if not self._is_terminal:
            write = partial(print_text, err=True)
            self.enter_context(progress_lines(lambda: self._state, write))
        self.callback(self._clear)

    def show(self, state: str) -> None:
        """Show *state* at once, or with the next line if it comes too soon after the last."""
        now, self._state = time.monotonic(), state
        if self._is_terminal and now - self._shown_at > _REDRAW_SECONDS:
            click.echo("\r" + state.ljust(self._width), err=True, nl=False)
            self._shown_at, self._width = now, len(state)

    def fetched(self, done: int, total: int) -> None:
        """Set the numbers of fetched and of all documents of an API, for the next line."""
        self._of_total = f" ({done:,} of {total:,})"

    def read(self, report: Report) -> None:
        """Show the number of records read so far, and the rate."""
        rate = report.read / max(time.monotonic() - self._began, _REDRAW_SECONDS)
        documents = f"{report.documents:,} documents{self._of_total}"
        self.show(f"Read {report.read:,} records in {documents}, {rate:,.0f} a second")

    def __call__(self, done: int, total: int) -> None:
        """Show the number of embedded texts."""
        self.show(f"Embedding: {done:,} of {total:,}")

    def _clear(self) -> None:
        if self._width:
            click.echo("\r" + " " * self._width + "\r", err=True, nl=False)
