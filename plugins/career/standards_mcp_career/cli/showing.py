"""How answers look to people."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any, Final

import click

from standards_mcp import InvalidInputError, ToolCaller
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings

as_json: Final = click.option("--json", "is_json", is_flag=True, help="Print JSON.")


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


def tell(found: object, shown: Callable[[], str], *, is_json: bool) -> None:
    """Print a value as JSON, or what people read of it."""
    click.echo(json.dumps(found, ensure_ascii=False) if is_json else shown())


def call_tool(
    context: click.Context,
    name: str,
    arguments: dict[str, Any],
    shown: Callable[[dict[str, Any]], str],
    *,
    is_json: bool,
) -> None:
    """Call a tool, print its answer, and end with 1 if it has failed."""
    call: ToolCaller = context.obj
    answer = call(name, arguments)
    found = answer.structured or {}
    if answer.is_error and not is_json:
        click.echo(found.get("message", answer.text), err=True)
    else:
        tell(found, lambda: shown(found), is_json=is_json)
    context.exit(int(answer.is_error))
