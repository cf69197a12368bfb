"""Change single keys of a configuration file; the rest of its text stays as it is.

Every function maps text to text. The caller reads and writes, and calls the function again where
another program wrote in the meantime, see `edit_text`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, Final, cast

import tomlkit
from tomlkit.items import InlineTable

from standards_mcp._utils.text import BYTE_ORDER_MARK, keeping_style

_LAST_EMPTY_LINE: Final = re.compile(r"(\r?\n)\r?\n\Z")
_Document = MutableMapping[str, Any]


def with_plugin(text: str, name: str, *, enabled: bool, table: str = "plugins") -> str:
    """Return *text* with ``[plugins.<name>] enabled`` set, or ``[<table>.<name>]``."""

    def change(document: _Document) -> None:
        _table(_table(document, table, is_super=True), name)["enabled"] = enabled

    return _changed(text, change)


def before_plugin_disabled(text: str, name: str, *, table: str = "plugins") -> str | None:
    """Return *text* as it was before `with_plugin` disabled the plugin, or None if it did not."""
    values = _values(text).get(table, {}).get(name, {})
    if values.get("enabled") is not False:
        return None
    disable = partial(with_plugin, name=name, enabled=False, table=table)
    return _undone(text, (table, name, "enabled"), lambda each: disable(each) == text)


def with_tool_enabled(text: str, pattern: str) -> str:
    """Return *text* without *pattern* in ``[tools] disable``; where it is not there, add it.

    To take it out is to undo `with_tool_disabled`, and gives back the text from before. Only a
    pattern that was not disabled is added, to ``enable``, if that is set. A pattern that matches
    more, such as ``web.*``, stays in ``disable`` and still wins.
    """
    if pattern not in disabled_tools(text):
        return _changed(text, lambda document: _allow(document, pattern))
    kept = _changed(text, lambda document: _take_out(document, pattern))
    undone = _undone(
        kept, ("tools", "disable"), lambda each: with_tool_disabled(each, pattern) == text
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
    found: Sequence[str] = _values(text).get("tools", {}).get("disable", ())
    return found


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
    """Return *text* without a key and the tables that were made for it, so that *is_before* holds.

    Which of the tables were there before, only trying tells.
    """
    for kept in range(len(path)):
        candidate = _changed(text, partial(_drop_empty, path, kept))
        # A table that is added at the end gets an empty line above it.
        for each in (_LAST_EMPTY_LINE.sub(r"\1", candidate), candidate):
            if is_before(each):
                return each
    return None


def _drop_empty(path: Sequence[str], kept: int, document: _Document) -> None:
    """Drop the key at the end of *path*, then all tables but *kept*, as long as all is empty."""
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
