"""Changes single keys of the configuration file, for ``plugins`` and ``tools enable|disable``."""

from __future__ import annotations

from collections.abc import Callable

import click

from standards_mcp.files import diff, read_text, replace_text
from standards_mcp.loaded_settings import user_config_file
from standards_mcp.masking import mask

from .invocation import Invocation

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
        before = read_text(file) or ""
        after = edit(before)
        if before == after:
            click.echo(f"{file} says so already.")
        elif dry_run:
            click.echo(_change(invocation, diff(file, before, after)))
        else:
            backup = replace_text(file, after)
            click.echo(f"Changed {file}" + (f"; the old file is {backup.name}" if backup else ""))
    except (OSError, UnicodeDecodeError) as exc:
        raise click.ClickException(f"{file} cannot be changed: {exc}") from None


def _change(invocation: Invocation, text: str) -> str:
    """Return a diff without the secrets that are known while no plugin is imported."""
    return mask(text, invocation.host.secrets())
