"""Changes single keys of a configuration file and leaves the rest of its text alone.

Every function maps text to text. The caller reads and writes under a lock, and calls the function
again where another program wrote in the meantime, see `edit_text`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, cast

import tomlkit
from tomlkit.items import InlineTable

from standards_mcp._utils.secrets import MASK, secret_paths
from standards_mcp._utils.text import BYTE_ORDER_MARK, keeping_style

_Document = MutableMapping[str, Any]


def with_plugin(text: str, name: str, *, enabled: bool, table: str = "plugins") -> str:
    """Return *text* with ``[plugins.<name>] enabled`` set, or that of another *table*."""

    def change(document: _Document) -> None:
        _table(_table(document, table, is_super=True), name)["enabled"] = enabled

    return _changed(text, change)


def with_tool_enabled(text: str, pattern: str) -> str:
    """Return *text* without *pattern* in ``[tools] disable``, and with it in ``enable`` if set.

    A pattern that matches more, such as ``web.*``, stays in ``disable`` and still wins.
    """

    def change(document: _Document) -> None:
        tools = document.get("tools", {})
        while pattern in tools.get("disable", ()):
            cast("list[str]", tools["disable"]).remove(pattern)
        if "enable" in tools and pattern not in tools["enable"] and "*" not in tools["enable"]:
            cast("list[str]", tools["enable"]).append(pattern)

    return _changed(text, change)


def with_tool_disabled(text: str, pattern: str) -> str:
    """Return *text* with *pattern* in ``[tools] disable``."""

    def change(document: _Document) -> None:
        disable = _table(document, "tools").setdefault("disable", tomlkit.array())
        if pattern not in disable:
            cast("list[str]", disable).append(pattern)

    return _changed(text, change)


def without_secrets(text: str) -> str:
    """Return *text* for showing, since a table of one line is shown whole.

    All values under keys that look like secrets are masked, and all values of plugins' own keys:
    only the plugin knows which of them are secret, and it is not imported for an edit.
    """

    def change(document: _Document) -> None:
        values = tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
        plugins = values.pop("plugins", {})
        for path in [*secret_paths(values), *_own_values(plugins)]:
            *tables, key = path
            table = document
            for name in tables:
                table = table[name]
            table[key] = MASK

    return _changed(text, change)


def _own_values(plugins: object) -> Iterator[tuple[str, ...]]:
    if not isinstance(plugins, Mapping):
        return
    for name, section in cast("Mapping[str, object]", plugins).items():
        if isinstance(section, Mapping):
            for key, value in cast("Mapping[str, object]", section).items():
                if not isinstance(value, bool):
                    yield "plugins", name, key


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
