"""Change single keys of a configuration file; the rest of its text stays as it is.

`change_config` edits the file in force. The other functions map text to text, and are called again
if another program wrote the file in the meantime, see `edit_text`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import tomlkit
from tomlkit.items import InlineTable

from standards_mcp._utils.files import Edit, edit_text
from standards_mcp._utils.text import BYTE_ORDER_MARK, keeping_style

from .layers import key_name, leaves, toml_value
from .loading import Sources, user_config_file
from .models.settings import Settings

Gains: TypeAlias = Callable[[Settings, Settings], Iterable[str]]
"""Return in words the contributions that only the second settings serve."""

_LAST_EMPTY_LINE: Final = re.compile(r"(\r?\n)\r?\n\Z")
_Document = MutableMapping[str, Any]


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
        file: The file that `file_to_change` returns.
        sources: The sources of the configuration, including the file.
        gains: Lists the contributions that the edit newly serves, for an edit that may do so.
        agree: Is called with these in one line; it raises an error to keep the file as it is.
        dry_run: Write nothing.

    Raises:
        OSError: The file cannot be read or written; nothing has changed then.
        UnicodeDecodeError: It is not UTF-8.
        ConfigError: It has mistakes.
    """

    def change(text: str) -> str:
        after = edit(text)
        if gains and after != text:
            old, new = (settings_without_profile(sources, version) for version in (text, after))
            if newly_served := ", ".join(gains(old, new)):
                agree(newly_served)
        return after

    return edit_text(file, change, dry_run=dry_run)


def file_to_change(sources: Sources) -> Path:
    """Return the file in force, or a new one in the user's folder.

    Raises:
        ConfigError: It has mistakes.
    """
    return sources.load().file or user_config_file()


def settings_without_profile(sources: Sources, text: str) -> Settings:
    """Return the settings for a file with this text, without a profile, which would narrow them."""
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


def with_plugin(text: str, name: str, *, enabled: bool, table: str = "plugins") -> str:
    """Return *text* with ``[plugins.<name>] enabled`` set, or ``[<table>.<name>]``."""

    def change(document: _Document) -> None:
        _table(_table(document, table, is_super=True), name)["enabled"] = enabled

    return _changed(text, change)


def before_plugin_disabled(text: str, name: str, *, table: str = "plugins") -> str | None:
    """Return *text* without the edit of `with_plugin` that disabled the plugin.

    Returns:
        None if the text is not a result of that edit.
    """
    values = _values(text).get(table, {}).get(name, {})
    if values.get("enabled") is not False:
        return None
    disable = partial(with_plugin, name=name, enabled=False, table=table)
    return _undone(text, (table, name, "enabled"), lambda before: disable(before) == text)


def with_tool_enabled(text: str, pattern: str) -> str:
    """Remove *pattern* from ``[tools] disable``, or add it to an existing ``[tools] enable``.

    Removing undoes `with_tool_disabled` and restores the text from before. A pattern is added only
    if it was not disabled. A wider pattern such as ``web.*`` stays in ``disable`` and still wins.
    """
    if pattern not in disabled_tools(text):
        return _changed(text, lambda document: _allow(document, pattern))
    kept = _changed(text, lambda document: _take_out(document, pattern))
    undone = _undone(
        kept, ("tools", "disable"), lambda before: with_tool_disabled(before, pattern) == text
    )
    return kept if undone is None else undone


def with_tool_disabled(text: str, pattern: str) -> str:
    """Return *text* with *pattern* in ``[tools] disable``."""

    def change(document: _Document) -> None:
        disable = _table(document, "tools").setdefault("disable", tomlkit.array())
        if pattern not in disable:
            cast("list[str]", disable).append(pattern)

    return _changed(text, change)


def disabled_tools(text: str) -> Sequence[str]:
    """Return the patterns in ``[tools] disable``."""
    patterns: Sequence[str] = _values(text).get("tools", {}).get("disable", ())
    return patterns


def _values(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))


def _allow(document: _Document, pattern: str) -> None:
    tools = document.get("tools", {})
    if "enable" in tools and pattern not in tools["enable"] and "*" not in tools["enable"]:
        cast("list[str]", tools["enable"]).append(pattern)


def _take_out(document: _Document, pattern: str) -> None:
    disable = cast("list[str]", document["tools"]["disable"])
    while pattern in disable:
        disable.remove(pattern)


def _undone(text: str, path: Sequence[str], is_before: Callable[[str], bool]) -> str | None:
    """Return *text* without a key and the tables that were created for it.

    The text does not show which tables existed before, so the function tries each possibility
    until *is_before* accepts one.
    """
    for kept in range(len(path)):
        candidate = _changed(text, partial(_drop_empty, path, kept))
        # tomlkit puts an empty line above a table that is added at the end.
        for before in (_LAST_EMPTY_LINE.sub(r"\1", candidate), candidate):
            if is_before(before):
                return before
    return None


def _drop_empty(path: Sequence[str], kept: int, document: _Document) -> None:
    """Drop the key at the end of *path*, then its empty tables but the outermost *kept*."""
    for end in range(len(path), kept, -1):
        *tables, key = path[:end]
        table: Any = document
        for name in tables:
            table = table[name]
        if table[key]:
            return
        del table[key]


def with_token(
    text: str, name: str, sha256: str, scopes: Sequence[str], expires: str | None = None
) -> str:
    """Return *text* with the token ``[server.auth.tokens.<name>]``, and tokens required."""

    def change(document: _Document) -> None:
        auth = _table(_table(document, "server", is_super=True), "auth")
        auth["required"] = True
        token = _table(_table(auth, "tokens", is_super=True), name)
        token["sha256"] = sha256
        token["scopes"] = list(scopes)
        token.pop("expires", None)
        if expires:
            token["expires"] = expires

    return _changed(text, change)


def without_token(text: str, name: str) -> str:
    """Return *text* without ``[server.auth.tokens.<name>]``; tokens stay required."""

    def change(document: _Document) -> None:
        auth = document.get("server", {}).get("auth", {})
        if name in auth.get("tokens", {}):
            auth["required"] = True
            del auth["tokens"][name]

    return _changed(text, change)


@keeping_style
def _changed(text: str, change: Callable[[_Document], None]) -> str:
    document = tomlkit.parse(text)
    change(document)
    return tomlkit.dumps(document)


def _table(parent: _Document, name: str, *, is_super: bool = False) -> _Document:
    if name not in parent:
        is_inline = isinstance(parent, InlineTable)
        parent[name] = tomlkit.inline_table() if is_inline else tomlkit.table(is_super)
    return cast("_Document", parent[name])
