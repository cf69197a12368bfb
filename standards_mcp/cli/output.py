"""How commands print: tables for people on 80 columns, one JSON document for programs."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click

from standards_mcp._utils.text import printable

WIDTH: Final = 80


def say(text: str, *, err: bool = False) -> None:
    """Print a line that may hold text of others, such as a key or what a plugin says of itself."""
    click.echo(printable(text), err=err)


def print_json(data: Any) -> None:
    """Print one JSON document, in ASCII where the terminal knows no more."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    say(json.dumps(data, ensure_ascii=not unicode, indent=2))


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns; the last column is wrapped to fit the width."""
    lines = [tuple(map(str, row)) for row in rows]
    if not lines:
        return
    widths = [max(len(row[index]) for row in lines) for index in range(len(lines[0]) - 1)]
    left = sum(widths) + 2 * len(widths)
    for row in lines:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        wrapped = textwrap.wrap(row[-1], max(WIDTH - left, 24)) or [""]
        say((head + wrapped[0]).rstrip())
        for line in wrapped[1:]:
            say(" " * left + line)


def examples(*lines: str) -> str:
    """Return the end of a command's help that shows how it is called."""
    return "\b\nExamples:\n" + "\n".join(f"  standards-mcp {line}" for line in lines)
