"""Asks before a command serves more than was served so far."""

from __future__ import annotations

import sys
from typing import Final

import click

from standards_mcp.commands import print_text

yes_option: Final = click.option(
    "--yes", is_flag=True, help="Do not ask, also where more is served than before."
)


def agree(what: str, *, yes: bool) -> None:
    """Tell what a change gives that was not given before, and ask for it on a terminal.

    Raises:
        click.ClickException: The answer is no, or there is no terminal and no ``--yes``.
    """
    if yes:
        print_text(what)
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.ClickException(f"{what}. Nothing is changed; add --yes if that is meant")
    print_text(what)
    if not click.confirm("Go on?"):
        raise click.ClickException("nothing is changed")
