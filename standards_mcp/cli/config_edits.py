"""Change single keys of the configuration file, and confirm changes that serve more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click

from standards_mcp._utils.text import describe_decoding
from standards_mcp.commands import ask, print_text
from standards_mcp.config.edits import (
    Gains,
    change_config,
    changed_keys,
    file_to_change,
)

from .invocation import Invocation

dry_run_option: Final = click.option(
    "--dry-run", is_flag=True, help="Show the changed keys and write nothing."
)
yes_option: Final = click.option(
    "--yes", is_flag=True, help="Do not ask, even if more is served than before."
)


def agree(change: str, *, yes: bool) -> None:
    """Print a change that serves more than before, and ask for it on a terminal.

    Raises:
        click.ClickException: The user declines, or cannot be asked without a terminal or ``--yes``.
    """
    if yes:
        print_text(change)
    else:
        ask(f"{change}.")


def edit_config(
    invocation: Invocation,
    edit: Callable[[str], str],
    *,
    dry_run: bool = False,
    gains: Gains | None = None,
    yes: bool = False,
    says: Callable[[str], None] = print_text,
) -> None:
    """Apply *edit* to the configuration file and report the change. See `change_config`.

    Args:
        gains: For an edit that may serve more: lists the additions, which need confirmation
            unless *yes*.
        says: Prints the report.

    Raises:
        click.ClickException: The file cannot be read or written, or the user does not confirm.
        ConfigError: It has mistakes.
    """
    sources = invocation.sources
    file = file_to_change(sources)
    try:
        done = change_config(
            file,
            sources,
            edit,
            gains=gains,
            agree=lambda additions: agree(f"This also serves: {additions}", yes=yes or dry_run),
            dry_run=dry_run,
        )
    except UnicodeDecodeError as exc:
        raise click.ClickException(f"{file}: {describe_decoding(exc)}") from None
    except OSError as exc:
        raise click.ClickException(f"{file} cannot be changed: {exc}") from None
    if not done.changes:
        says(f"{file} already has this setting.")
    elif dry_run:
        # A diff of lines could show secrets: the file may be one line, and only a plugin knows its
        # secret keys.
        print_text(f"{file}\n{changed_keys(done.before, done.after)}")
    else:
        kept = f"; the old file is {done.backup.name}" if done.backup else ""
        says(f"Changed {file}{kept}")
