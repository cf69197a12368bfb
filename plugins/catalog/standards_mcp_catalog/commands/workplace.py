"""The objects of the ``data`` commands, the completions of their arguments, and their progress."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import anyio
import click

from standards_mcp.commands import counted, print_text, progress_lines
from standards_mcp_catalog.backends import open_embedded
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.settings import CatalogSettings

if TYPE_CHECKING:
    from standards_mcp_catalog.importing.report import Report
    from standards_mcp_catalog.local.catalog import LocalCatalog

_PAUSE = 0.1


@dataclass
class Workplace:
    """The settings of the catalog and its stores; each is opened when a command needs it.

    Attributes:
        configured: Returns the catalog that searches use.
    """

    settings: CatalogSettings
    configured: Callable[[], Catalog]

    @cached_property
    def embedded(self) -> LocalCatalog:
        """The embedded catalog, whichever one the configuration chooses for searches."""
        return open_embedded(self.settings)

    def close(self) -> None:
        """Close the embedded catalog."""
        if "embedded" in vars(self):
            anyio.run(self.embedded.aclose)


def loaded_sets(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the standard sets that are loaded."""
    for each in workplace.embedded.store.sets():
        yield each.id, f"{each.title} ({each.jurisdiction_title}, {each.subject})"


def loaded_sets_and_crosswalks(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the standard sets and the crosswalks that are loaded."""
    yield from loaded_sets(workplace)
    for each, _ in workplace.embedded.store.database.relations.crosswalks():
        yield each


def loaded_jurisdictions(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the jurisdictions that have standards."""
    counts = Counter(each.jurisdiction_title for each in workplace.embedded.store.sets())
    for title, count in counts.items():
        yield title, counted(count, "set")


class ProgressLine:
    """One line on stderr that says how far a command is.

    Without a terminal, it prints a line every ten seconds. This is a
    `standards_mcp_catalog.base.Progress` for texts that are embedded.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown_at = self._began
        self._is_terminal = sys.stderr.isatty()
        self._of = ""
        self._state = "Working"
        self._width = 0
        self._lines = ExitStack()

    def __enter__(self) -> Self:
        if not self._is_terminal:
            self._lines.enter_context(
                progress_lines(lambda: self._state, lambda line: print_text(line, err=True))
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, state: str) -> None:
        """Show a state, or keep it for the next line."""
        now, self._state = time.monotonic(), state
        if self._is_terminal and now - self._shown_at > _PAUSE:
            click.echo("\r" + state.ljust(self._width), err=True, nl=False)
            self._shown_at, self._width = now, len(state)

    def fetched(self, done: int, total: int) -> None:
        """Remember how many documents of an API have come."""
        self._of = f" ({done:,} of {total:,})"

    def read(self, report: Report) -> None:
        """Show how much is read, and how fast."""
        rate = report.read / max(time.monotonic() - self._began, _PAUSE)
        documents = f"{report.documents:,} documents{self._of}"
        self.show(f"Read {report.read:,} records in {documents}, {rate:,.0f} a second")

    def __call__(self, done: int, total: int) -> None:
        """Show how many texts are embedded."""
        self.show(f"Embedding: {done:,} of {total:,}")

    def close(self) -> None:
        """Remove the line."""
        self._lines.close()
        if self._width:
            click.echo("\r" + " " * self._width + "\r", err=True, nl=False)
            self._width = 0
