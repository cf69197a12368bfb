"""Changes of the configuration file, for commands and for the admin page."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from standards_mcp._utils.files import Edit, edit_text
from standards_mcp._utils.text import BYTE_ORDER_MARK

from .layers import key_name, leaves
from .loading import Sources, user_config_file
from .models.settings import Settings
from .toml.keys import toml_value

Gains: TypeAlias = Callable[[Settings, Settings], Iterable[str]]
"""Return the contributions that the second settings serve and the first do not, in words."""


def change_config(
    file: Path,
    sources: Sources,
    edit: Callable[[str], str],
    *,
    gains: Gains | None = None,
    agree: Callable[[str], None] = lambda _: None,
    dry_run: bool = False,
) -> Edit:
    """Apply *edit* to the text of a file.

    Args:
        file: That of `file_to_change`.
        sources: Where the configuration comes from, this file among them.
        gains: Given if the edit may serve more.
        agree: Called with the gains in one line; it raises an error to keep the file as it is.
        dry_run: Write nothing.

    Raises:
        OSError: The file cannot be read or written; nothing has changed then.
        UnicodeDecodeError: It is not UTF-8.
        ConfigError: It has mistakes.
    """

    def change(text: str) -> str:
        after = edit(text)
        if gains and after != text:
            gained = gains(*(for_everybody(sources, each) for each in (text, after)))
            if what := ", ".join(gained):
                agree(what)
        return after

    return edit_text(file, change, dry_run=dry_run)


def file_to_change(sources: Sources) -> Path:
    """Return the file in force, or a new one in the user's folder.

    Raises:
        ConfigError: It has mistakes.
    """
    return sources.load().file or user_config_file()


def for_everybody(sources: Sources, text: str) -> Settings:
    """Return the settings where the file has this text, for everybody: profiles only narrow."""
    return sources.load(text).settings.model_copy(update={"profile": None})


def changed_keys(before: str, after: str) -> str:
    """Return the keys that an edit changes as a diff; no other value of the file is in it."""
    old, new = (
        dict(leaves(tomllib.loads(text.removeprefix(BYTE_ORDER_MARK)))) for text in (before, after)
    )
    lines: list[str] = []
    for path in old | new:
        if old.get(path) != new.get(path):
            lines += [f"-{key_name(path)} = {toml_value(old[path])}"] if path in old else []
            lines += [f"+{key_name(path)} = {toml_value(new[path])}"] if path in new else []
    return "\n".join(lines)
