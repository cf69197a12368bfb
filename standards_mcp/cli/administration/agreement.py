"""Ask before a command serves more than was served so far, or deletes."""

from __future__ import annotations

from typing import Final

import click

from standards_mcp.commands import ask, print_text

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
    else:
        ask(f"{what}.")
