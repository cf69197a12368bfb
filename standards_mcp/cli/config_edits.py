"""Changes single keys of the configuration file, for ``plugins`` and ``tools enable|disable``."""

from __future__ import annotations

from collections.abc import Callable

import click

from standards_mcp._utils.files import diff, edit_text
from standards_mcp._utils.secrets import mask
from standards_mcp.config.editing import without_secrets
from standards_mcp.config.loading import user_config_file

from .invocation import Invocation
from .output import say

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show the change as a diff and write nothing."
)


def edit_config(invocation: Invocation, edit: Callable[[str], str], *, dry_run: bool) -> None:
    """Apply *edit* to the text of the file in force, or of a new one in the user's folder.

    Raises:
        click.ClickException: The file cannot be read or written.
        ConfigError: It has mistakes.
    """
    file = invocation.load_settings().file or user_config_file()
    try:
        done = edit_text(file, edit, dry_run=dry_run)
    except (OSError, UnicodeDecodeError) as exc:
        raise click.ClickException(f"{file} cannot be changed: {exc}") from None
    if not done.changes:
        click.echo(f"{file} says so already.")
    elif dry_run:
        change = diff(file, without_secrets(done.before), without_secrets(done.after))
        say(mask(change, invocation.host.secrets()))
    else:
        kept = f"; the old file is {done.backup.name}" if done.backup else ""
        click.echo(f"Changed {file}{kept}")
