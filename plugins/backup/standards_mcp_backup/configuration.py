"""The configuration file without secrets."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

import tomlkit

from standards_mcp.commands import looks_secret
from standards_mcp.transports import Host, PluginKind

_Path: TypeAlias = tuple[str, ...]
_REFERENCE: Final = re.compile(r"\$\{\w+\}")


def without_secrets(text: str, host: Host) -> tuple[str, list[str]]:
    """Return the text of a configuration file without its secrets, and the names of these.

    The names are the keys of values that were left out, and references to variables.

    A value is left out if its key looks secret, if it has a known secret or the password of an
    address, or if it is a setting of a plugin that is not loaded here: only the plugin knows
    whether it is secret. A reference such as ``${TOKEN}`` stays. Comments are left out, too.

    Args:
        text: The file, which is valid.
        host: A host with this configuration and its plugins loaded.
    """
    values = tomllib.loads(text)
    secrets = [path for path, value in _leaves(values) if _is_secret(path, value, host)]
    for *tables, key in secrets:
        parent = values
        for table in tables:
            parent = parent[table]
        del parent[key]
    references = {
        str(value)
        for path, value in _leaves(values)
        if any(map(looks_secret, path)) and _is_reference(value)
    }
    return tomlkit.dumps(values), [*(".".join(path) for path in secrets), *sorted(references)]


def secret_variables(host: Host) -> list[str]:
    """Return the names of the environment variables in force that have secrets."""
    variables = host.layers.variables()
    return sorted(
        name for name, text in variables.items() if looks_secret(name) or host.mask(text) != text
    )


def _leaves(table: dict[str, Any], path: _Path = ()) -> Iterator[tuple[_Path, object]]:
    """Yield the values that are not tables, with their paths. A list is one value."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(cast("dict[str, Any]", value), (*path, key))
        else:
            yield (*path, key), value


def _is_secret(path: _Path, value: object, host: Host) -> bool:
    if _is_reference(value):
        return False
    text = json.dumps(value, ensure_ascii=False, default=str)
    has_secret_key = any(map(looks_secret, (*path, *_keys(value))))
    return has_secret_key or host.mask(text) != text or _is_unknown(path, host)


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def _keys(value: object) -> Iterator[str]:
    """Yield the keys of all tables in a list."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _keys(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield key
            yield from _keys(item)


def _is_unknown(path: _Path, host: Host) -> bool:
    """Return True if the path is a setting of a plugin whose settings are unknown here."""
    if path[0] != "plugins" or len(path) <= len(("plugins", "name")):
        return False
    record, section = host.manager.records.get(path[1]), host.settings.section(path[1])
    is_known = record is not None and record.plugin is not None
    is_isolated = record is not None and record.info.kind is PluginKind.ISOLATED
    return path[2] not in type(section).model_fields and (is_isolated or not is_known)
