"""Changes single keys of the configuration file, for ``plugins`` and ``tools enable|disable``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from standards_mcp._utils.files import diff, edit_text
from standards_mcp._utils.secrets import mask
from standards_mcp.config.editing import without_secrets
from standards_mcp.config.loading import load_settings, user_config_file
from standards_mcp.config.models.settings import Settings

from .agreement import agree
from .invocation import Invocation, parse_overrides
from .output import say

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show the change as a diff and write nothing."
)
Gains = Callable[[Settings, Settings], Iterable[str]]
"""Returns what the second settings serve beyond the first, in words."""


def edit_config(
    invocation: Invocation,
    edit: Callable[[str], str],
    *,
    dry_run: bool = False,
    gains: Gains | None = None,
    yes: bool = False,
    says: Callable[[str], None] = click.echo,
) -> None:
    """Apply *edit* to the text of the file in force, or of a new one in the user's folder.

    Args:
        gains: Where the edit may serve more; that is told, and asked for without *yes*.
        says: Tells what was changed.

    Raises:
        click.ClickException: The file cannot be read or written, or nobody agrees.
        ConfigError: It has mistakes.
    """
    file = invocation.load_settings().file or user_config_file()
    agreed = ""

    def change(text: str) -> str:
        nonlocal agreed
        after = edit(text)
        if gains and after != text:
            gained = gains(*(settings_of(invocation, each) for each in (text, after)))
            what = ", ".join(gained)
            # It is called again where another program wrote meanwhile: nobody is asked twice.
            if what not in ("", agreed):
                agree(f"Now also served: {what}", yes=yes or dry_run)
                agreed = what
        return after

    try:
        done = edit_text(file, change, dry_run=dry_run)
    except (OSError, UnicodeDecodeError) as exc:
        raise click.ClickException(f"{file} cannot be changed: {exc}") from None
    if not done.changes:
        says(f"{file} says so already.")
    elif dry_run:
        change_shown = diff(file, without_secrets(done.before), without_secrets(done.after))
        say(mask(change_shown, invocation.host.secrets()))
    else:
        kept = f"; the old file is {done.backup.name}" if done.backup else ""
        says(f"Changed {file}{kept}")


def settings_of(invocation: Invocation, text: str) -> Settings:
    """Return the settings where the file has this text, for everybody: profiles only narrow."""
    loaded = load_settings(invocation.config, parse_overrides(invocation.pairs), text)
    return loaded.settings.model_copy(update={"profile": None})
