"""Paths in the configuration, made whole before the values of its sources are put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from .errors import ConfigError

_KEYS: Final = (("catalog", "path"), ("", "state_dir"), ("", "servers_file"))


def with_whole_paths(values: Mapping[str, Any], folder: Path, source: str) -> dict[str, Any]:
    """Return *values* with its paths absolute; a blank one is left out, as if it were not given.

    Args:
        folder: Where relative paths start.
        source: What to call the source of the values in an error.

    Raises:
        ConfigError: A path starts in the home of a user who has none, or is no path.
    """
    result = dict(values)
    for name, key in _KEYS:
        table: Any = result.get(name) if name else result
        if not isinstance(table, dict) or not isinstance(table.get(key), str):
            continue  # what is no text is for validation to report
        table = dict(cast("dict[str, Any]", table))
        text = table.pop(key).strip()
        if text:
            where = f"{source}: [{name}] {key}" if name else f"{source}: {key}"
            if "\0" in text:
                raise ConfigError(f"{where}: a path cannot hold a null character")
            table[key] = str(folder.absolute() / in_home(Path(text), where))
        result = result | {name: table} if name else table
    return result


def in_home(path: Path, where: str) -> Path:
    """Return *path* with ``~`` replaced by the home folder.

    Args:
        where: What to call the place of the path in an error.

    Raises:
        ConfigError: There is no such home.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{where}: {path}: {error}; write the whole path") from None
