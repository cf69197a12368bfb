"""Show the progress of an import or a build on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import click

from standards_mcp.commands import print_text, progress_lines

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from standards_mcp_catalog.importing.report import Report

_PAUSE = 0.1


class ImportProgress:
    """One line that counts what is read, then a bar for texts being embedded, with the time left.

    Where there is no terminal, a line every ten seconds says the same. This is a
    `standards_mcp_catalog.base.Progress`.
    """

    def __init__(self) -> None:
        self._began = self._told = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._of = ""
        self._line = ""
        self._bar: ProgressBar[Any] | None = None
        self._state = "Working"
        self._lines = ExitStack()

    def __enter__(self) -> Self:
        if not self._is_terminal:
            self._lines.enter_context(
                progress_lines(lambda: self._state, lambda line: print_text(line, err=True))
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fetched(self, done: int, total: int) -> None:
        """Remember how many documents of an API have come."""
        self._of = f" ({done:,} of {total:,})"

    def read(self, report: Report) -> None:
        """Tell how much is read, and how fast."""
        now = time.monotonic()
        if now - self._told > _PAUSE:
            self._told = now
            rate = report.read / max(now - self._began, _PAUSE)
            documents = f"{report.documents:,} documents{self._of}"
            self._state = f"Read {report.read:,} records in {documents}, {rate:,.0f} a second"
            if self._is_terminal:
                self._show(self._state)

    def __call__(self, done: int, total: int) -> None:
        """Tell how many texts are embedded."""
        self._state = f"Embedding: {done:,} of {total:,}"
        if not self._is_terminal:
            return
        if self._bar is None:
            self._clear()
            self._bar = click.progressbar(
                length=total, label="Embedding", file=sys.stderr, show_pos=True, show_eta=True
            )
        self._bar.update(done - self._bar.pos)

    def close(self) -> None:
        """End the line."""
        self._lines.close()
        self._clear()
        if self._bar is not None:
            self._bar.render_finish()

    def _show(self, line: str) -> None:
        click.echo("\r" + line.ljust(len(self._line)), err=True, nl=False)
        self._line = line

    def _clear(self) -> None:
        if self._line:
            click.echo("\r" + " " * len(self._line) + "\r", err=True, nl=False)
            self._line = ""
