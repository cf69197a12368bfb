"""Change single keys of a configuration file; the rest of its text stays as it is.

`change_config` applies an edit to the file. The edits, `with_...` and `without_...`, map the old
text to the new one. `edit_text` calls them again if another program has changed the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import tomlkit
from tomlkit.items import InlineTable, Item

from standards_mcp._utils.text import BYTE_ORDER_MARK, keeping_style
from standards_mcp.files import Edit, edit_text

from .layers import key_name, leaves, toml_value
from .loading import Sources, user_config_file
from .models.settings import Settings

ListNewlyExposed: TypeAlias = Callable[[Settings, Settings], Iterable[str]]
"""List the contributions, in words, that only the second settings expose."""

_TRAILING_NEWLINES: Final = re.compile(r"\n+\Z")
_Document = MutableMapping[str, Any]


def change_config(
    file: Path,
    sources: Sources,
    edit: Callable[[str], str],
    *,
    gains: ListNewlyExposed | None = None,
    agree: Callable[[str], None] = lambda _: None,
    dry_run: bool = False,
) -> Edit:
    """Apply *edit* to the text of a file.

    Args:
        file: The file that `file_to_change` returns.
        sources: The sources of the configuration, including the file.
        gains: Lists the contributions that the edit newly exposes; None for edits that cannot
            expose more.
        agree: Confirms a list that is not empty, in one line, or raises an error to keep the file
            as it is.
        dry_run: Write nothing.

    Raises:
        OSError: The file cannot be read or written; nothing has changed then.
        UnicodeDecodeError: The file is not UTF-8.
        ConfigError: The configuration is invalid, before or after the edit.
    """

    def change(text: str) -> str:
        after = edit(text)
        if gains and after != text:
            old, new = (settings_without_profile(sources, version) for version in (text, after))
            if newly_exposed := ", ".join(gains(old, new)):
                agree(newly_exposed)
        return after

    return edit_text(file, change, dry_run=dry_run)


def file_to_change(sources: Sources) -> Path:
    """Return the configuration file in force, or the path of a new one in the user's folder.

    Raises:
        ConfigError: The configuration is invalid.
    """
    return sources.load().file or user_config_file()


def settings_without_profile(sources: Sources, text: str) -> Settings:
    """Return the settings with *text* as the file, without a profile, which would hide tools."""
    return sources.load(text).settings.model_copy(update={"profile": None})


def changed_keys(before: str, after: str) -> str:
    """Return the keys that an edit changes as a diff, without any other value of the file."""
    old, new = dict(leaves(_values(before))), dict(leaves(_values(after)))
    lines: list[str] = []
    for path in old | new:
        if old.get(path) != new.get(path):
            lines += [f"-{key_name(path)} = {toml_value(old[path])}"] if path in old else []
            lines += [f"+{key_name(path)} = {toml_value(new[path])}"] if path in new else []
    return "\n".join(lines)


@keeping_style
def with_values(text: str, values: Mapping[tuple[str, ...], object]) -> str:
    """Return *text* with the keys at these paths set; None removes a key."""
    document = tomlkit.parse(text)
    for (*tables, key), value in values.items():
        parent = cast("_Document", document)
        for depth, name in enumerate(tables, 1):
            parent = _table(parent, name, is_super=depth < len(tables))
        if value is not None:
            parent[key] = value
        elif key in parent:
            del parent[key]
    return tomlkit.dumps(document)


def with_checked_values(
    text: str,
    sources: Sources,
    values: Callable[[Settings], Mapping[tuple[str, ...], object]],
    check: Callable[[Settings], None],
) -> str:
    """Return *text* with new values. Both functions may raise an error to keep the file as it is.

    Args:
        values: Returns the arguments of `with_values` from the settings before.
        check: Is called with the settings after.

    Raises:
        ConfigError: The configuration is invalid, before or after the edit.
    """
    changed = with_values(text, values(settings_without_profile(sources, text)))
    check(settings_without_profile(sources, changed))
    return changed


@keeping_style
def without_plugin_disabled(text: str, name: str, *, table: str = "plugins") -> str:
    """Return *text* without ``enabled = false`` in the table of a plugin."""
    document = tomlkit.parse(text)
    sections = cast("_Document", document).get(table, {})
    if sections.get(name, {}).get("enabled") is False:
        del sections[name]["enabled"]
        _delete_empty(document, table, name)
    return _dumps(document)


@keeping_style
def with_tool_enabled(text: str, pattern: str) -> str:
    """Remove *pattern* from ``[tools] disable``, or add it to an existing ``[tools] enable``.

    A pattern is added only if it was not disabled. A wider pattern such as ``web.*`` stays in
    ``disable`` and still wins.
    """
    document = tomlkit.parse(text)
    tools = cast("_Document", document).get("tools", {})
    disabled = cast("list[str]", tools.get("disable", []))
    if pattern in disabled:
        while pattern in disabled:
            disabled.remove(pattern)
        _delete_empty(document, "tools", "disable")
        return _dumps(document)
    enabled = cast("list[str]", tools.get("enable", ["*"]))
    if pattern not in enabled and "*" not in enabled:
        enabled.append(pattern)
    return tomlkit.dumps(document)


@keeping_style
def with_tool_disabled(text: str, pattern: str) -> str:
    """Return *text* with *pattern* in ``[tools] disable``."""
    document = tomlkit.parse(text)
    disabled = _table(document, "tools").setdefault("disable", tomlkit.array())
    if pattern not in disabled:
        disabled.append(pattern)
    return tomlkit.dumps(document)


def with_tool_switched(text: str, declared: str, names: Iterable[str], *, enabled: bool) -> str:
    """Return *text* with one tool enabled or disabled.

    Args:
        declared: The declared name of the tool.
        names: All names of the tool; a name in ``[tools] disable`` is removed.
    """
    if not enabled:
        return with_tool_disabled(text, declared)
    disabled = _values(text).get("tools", {}).get("disable", ())
    for name in [name for name in names if name in disabled] or [declared]:
        text = with_tool_enabled(text, name)
    return text


def _values(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))


def _table(parent: _Document, name: str, *, is_super: bool = False) -> _Document:
    if name not in parent:
        is_inline = isinstance(parent, InlineTable)
        parent[name] = tomlkit.inline_table() if is_inline else tomlkit.table(is_super)
    return cast("_Document", parent[name])


def _delete_empty(document: _Document, table: str, key: str) -> None:
    """Delete *key* from *table* if it is empty and has no comment, then *table* likewise."""
    parent = cast("_Document", document[table])
    for container, name in ((parent, key), (document, table)):
        item = cast("Item", container[name])
        if item or "#" in item.as_string() + item.trivia.comment:
            return
        del container[name]


def _dumps(document: tomlkit.TOMLDocument) -> str:
    # tomlkit puts an empty line above a table that is added at the end, and leaves it there.
    text = _TRAILING_NEWLINES.sub("\n", tomlkit.dumps(document))
    return text if text.strip() else ""
