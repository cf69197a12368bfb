"""Edit single keys of the configuration file; ask for confirmation if an edit exposes more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click

from standards_mcp._utils.text import describe_decoding
from standards_mcp.commands import ask, print_text
from standards_mcp.config.edits import (
    ListNewlyExposed,
    change_config,
    changed_keys,
    file_to_change,
)
from standards_mcp.config.loading import Sources

dry_run_option: Final = click.option(
    "--dry-run", is_flag=True, help="Show the changed keys and write nothing."
)
yes_option: Final = click.option(
    "--yes", is_flag=True, help="Skip the confirmation for changes that expose more."
)


def confirm_exposure(change: str, *, yes: bool) -> None:
    """Ask the user to confirm a change that exposes more; with *yes*, only print it.

    Raises:
        click.ClickException: The user declines, or there is no terminal and *yes* is not set.
    """
    if yes:
        print_text(change)
    else:
        ask(f"{change}.")


def edit_config(
    sources: Sources,
    edit: Callable[[str], str],
    *,
    dry_run: bool = False,
    list_newly_exposed: ListNewlyExposed | None = None,
    yes: bool = False,
    report: Callable[[str], None] = print_text,
) -> None:
    """Apply *edit* to the configuration file and report the change. See `change_config`.

    Args:
        list_newly_exposed: Lists the contributions that the edit newly exposes. A list that is not
            empty needs confirmation unless *yes* or *dry_run* is set. None for edits that cannot
            expose more.
        report: Prints the result.

    Raises:
        click.ClickException: The file cannot be read or written, or the user does not confirm.
        ConfigError: The configuration is invalid, before or after the edit.
    """
    file = file_to_change(sources)
    try:
        result = change_config(
            file,
            sources,
            edit,
            gains=list_newly_exposed,
            agree=lambda newly_exposed: confirm_exposure(
                f"This change would also expose: {newly_exposed}", yes=yes or dry_run
            ),
            dry_run=dry_run,
        )
    except UnicodeDecodeError as exc:
        raise click.ClickException(f"{file}: {describe_decoding(exc)}") from None
    except OSError as exc:
        raise click.ClickException(f"{file} cannot be changed: {exc}") from None
    if not result.changes:
        report(f"{file} already has this setting.")
    elif dry_run:
        # Show the changed keys, not a line diff: a changed line may contain a secret too, and we
        # cannot recognize the secret keys of plugins.
        print_text(f"{file}\n{changed_keys(result.before, result.after)}")
    else:
        backup = f"; the old file is {result.backup.name}" if result.backup else ""
        report(f"Changed {file}{backup}")
