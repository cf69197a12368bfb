"""Changes single keys of the configuration file, for ``plugins`` and ``tools enable|disable``."""

from __future__ import annotations

from collections.abc import Callable

import click

from standards_mcp._utils.text import describe_decoding
from standards_mcp.cli.invocation import Invocation
from standards_mcp.commands import print_text
from standards_mcp.config.edits import (
    Gains,
    change_config,
    changed_keys,
    file_to_change,
    settings_without_profile,
)
from standards_mcp.config.models.settings import Settings

from .agreement import agree

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show the changed keys and write nothing."
)


def edit_config(
    invocation: Invocation,
    edit: Callable[[str], str],
    *,
    dry_run: bool = False,
    gains: Gains | None = None,
    yes: bool = False,
    says: Callable[[str], None] = print_text,
) -> None:
    """Apply *edit* to the configuration file, and say so. See `change_config`.

    Args:
        gains: Where the edit may serve more; that is told, and asked for without *yes*.
        says: Tells what was changed.

    Raises:
        click.ClickException: The file cannot be read or written, or nobody agrees.
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
            agree=lambda what: agree(f"Now also served: {what}", yes=yes or dry_run),
            dry_run=dry_run,
        )
    except UnicodeDecodeError as exc:
        raise click.ClickException(f"{file}: {describe_decoding(exc)}") from None
    except OSError as exc:
        raise click.ClickException(f"{file} cannot be changed: {exc}") from None
    if not done.changes:
        says(f"{file} says so already.")
    elif dry_run:
        print_text(f"{file}\n{changed_keys(done.before, done.after)}")
    else:
        kept = f"; the old file is {done.backup.name}" if done.backup else ""
        says(f"Changed {file}{kept}")


def settings_of(invocation: Invocation, text: str) -> Settings:
    """Return the settings where the file has this text. See `settings_without_profile`."""
    return settings_without_profile(invocation.sources, text)
