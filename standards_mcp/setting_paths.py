"""Paths in the configuration, made whole before the values of its sources are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from .errors import ConfigError

_PATHS: Final = (("catalog", "path"), ("state_dir",), ("servers_file",))


def with_whole_paths(
    values: Mapping[str, Any], folder: Path, where: Callable[[tuple[str, ...]], str]
) -> dict[str, Any]:
    """Return *values* with its paths absolute; a blank one is left out, as if it were not given.

    Args:
        folder: Where relative paths start.
        where: Tells how to call the place of a key in an error.

    Raises:
        ConfigError: A path starts in the home of a user who has none, or is no path.
    """
    result = dict(values)
    for path in (*_PATHS, *_folders_of_servers(values)):
        result = _with_whole_path(result, path, folder, where(path))
    return result


def _with_whole_path(table: Any, path: tuple[str, ...], folder: Path, where: str) -> Any:
    """Return a table with the path at these keys absolute; a blank one is left out."""
    key, *inner = path
    if not isinstance(table, dict) or key not in table:
        return cast("Any", table)
    result = dict(cast("dict[str, Any]", table))
    if inner:
        return result | {key: _with_whole_path(result[key], tuple(inner), folder, where)}
    if not isinstance(result[key], str):
        return result  # what is no text is for validation to report
    text = str(result.pop(key)).strip()
    if "\0" in text:
        raise ConfigError(f"{where}: a path cannot hold a null character")
    return result | {key: str(folder.absolute() / in_home(Path(text), where))} if text else result


def _folders_of_servers(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    servers = values.get("servers")
    if not isinstance(servers, Mapping):
        return []
    return [("servers", name, "cwd") for name in cast("Mapping[str, Any]", servers)]


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
        reason = str(error).rstrip(".")
        raise ConfigError(f"{where}: {path}: {reason}; write the whole path") from None
