"""What the commands share: records at hand, and calls of tools."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any

import click

from standards_mcp import InvalidInputError, ToolCaller
from standards_mcp.commands import print_answer
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings


@contextmanager
def opened(settings: CareerSettings) -> Generator[Career]:
    """Open what is there, for a command that only reads.

    Raises:
        InvalidInputError: There is no database: opening it would make one.
    """
    if settings.db is not None and not settings.db.exists() and not settings.load:
        raise InvalidInputError(
            f"There is no database at {settings.db}. Check plugins.career.db, or import records."
        )
    with closing(open_career(settings)) as career:
        yield career


def call_tool(
    context: click.Context,
    name: str,
    arguments: dict[str, Any],
    shown: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> None:
    """Call a tool, print its answer, and end with 1 if it has failed."""
    call: ToolCaller = context.obj
    answer = call(name, arguments)
    print_answer(answer, shown, as_json=as_json)
    context.exit(int(answer.is_error))
