"""Change single keys of a configuration file; the rest of its text stays as it is.

`change_config` applies an edit to the file. The edits, `with_...` and `without_...`, map the old
text to the new one. `edit_text` calls them again if another program has changed the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, MutableMapping, Sequence
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
def with_plugin(text: str, name: str, *, enabled: bool, table: str = "plugins") -> str:
    """Return *text* with ``[plugins.<name>] enabled`` set, or ``[<table>.<name>]``."""
    document = tomlkit.parse(text)
    _table(_table(document, table, is_super=True), name)["enabled"] = enabled
    return tomlkit.dumps(document)


@keeping_style
def without_plugin_disabled(text: str, name: str, *, table: str = "plugins") -> str:
    """Return *text* without the key that `with_plugin` sets to disable a plugin."""
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


def disabled_tools(text: str) -> Sequence[str]:
    """Return the patterns in ``[tools] disable``."""
    patterns: Sequence[str] = _values(text).get("tools", {}).get("disable", ())
    return patterns


@keeping_style
def with_token(
    text: str, name: str, sha256: str, scopes: Sequence[str], expires: str | None = None
) -> str:
    """Return *text* with ``[server.auth.tokens.<name>]``; requests then need a token."""
    document = tomlkit.parse(text)
    auth = _table(_table(document, "server", is_super=True), "auth")
    auth["required"] = True
    token = _table(_table(auth, "tokens", is_super=True), name)
    token["sha256"] = sha256
    token["scopes"] = list(scopes)
    token.pop("expires", None)
    if expires:
        token["expires"] = expires
    return tomlkit.dumps(document)


@keeping_style
def without_token(text: str, name: str) -> str:
    """Return *text* without ``[server.auth.tokens.<name>]``; requests still need a token."""
    document = tomlkit.parse(text)
    auth = cast("_Document", document).get("server", {}).get("auth", {})
    if name in auth.get("tokens", {}):
        auth["required"] = True
        del auth["tokens"][name]
    return tomlkit.dumps(document)


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
