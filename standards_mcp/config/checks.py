"""Find settings that are valid and do not work: patterns, programs, folders, exposed secrets."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel

from standards_mcp._utils.secrets import declares_secret
from standards_mcp._utils.text import did_you_mean

from .errors import Problem, misplaced_secret
from .layers import Layers, key_name, leaves
from .models.http import Scope
from .models.settings import Settings
from .models.tools import Kind, first_match
from .plugin_values import plugin_variables

_ADDRESSES: Final = ("https://", "http://", "${")
_SEPARATORS: Final = re.compile(r"[-_.]+")
_LISTED_BY: Final = {"distributions": "plugins list --json", "plugins": "plugins list"}


@dataclass(frozen=True, slots=True)
class Names:
    """The names that patterns can match: contributions, plugins and their distributions.

    Attributes:
        failed: The plugins that failed, so that their contributions are not known.
    """

    contributions: Mapping[Kind, Collection[str]]
    plugins: Collection[str]
    distributions: Collection[str]
    failed: Collection[str] = ()


def canonical_name(distribution: str) -> str:
    """Return the one spelling that all spellings of a distribution's name share.

    https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return _SEPARATORS.sub("-", distribution).lower()


def is_trusted(distribution: str, patterns: Iterable[str]) -> bool:
    """Tell whether a glob matches a distribution, however either of them is spelt."""
    canonical = [canonical_name(pattern) for pattern in patterns]
    return bool(first_match((canonical_name(distribution),), canonical))


def no_match(
    pattern: str, kind: Kind | Literal["distributions", "plugins"], names: Iterable[str]
) -> str:
    """Return the sentence that a glob matches none of these names, with the nearest of them."""
    hint = did_you_mean(pattern.strip("*?"), names)
    listed = f"; see `standards-mcp {_LISTED_BY.get(kind, kind)}`"
    return f"{pattern!r} matches no {kind[:-1]}{hint or listed}"


def check_settings(settings: Settings, names: Names, profiles: Iterable[str]) -> Iterator[Problem]:
    """Yield the keys that have no effect, such as patterns that match nothing.

    Args:
        profiles: The profiles whose rules are checked beside the rules for all.
    """
    chosen = tuple(profiles)
    for pattern in settings.trusted:
        if pattern != "*" and not any(is_trusted(each, (pattern,)) for each in names.distributions):
            message = no_match(pattern, "distributions", names.distributions)
            yield Problem(("trusted",), message)
    yield from _limits(settings)
    for kind, known in names.contributions.items():
        for each in _of_kind(settings, kind, known, chosen):
            yield replace(each, message=each.message + _perhaps_of(names.failed))
    for each in _scopes(settings, names):
        yield replace(each, message=each.message + _perhaps_of(names.failed))
    for profile in chosen:
        for pattern in _unmatched(settings.profiles[profile].plugins, names.plugins):
            message = no_match(pattern, "plugins", names.plugins)
            yield Problem(("profiles", profile, "plugins"), message)


def _scopes(settings: Settings, names: Names) -> Iterator[Problem]:
    """Yield the globs of scopes that match nothing, if the contributions are known."""
    known = [name for each in names.contributions.values() for name in each]
    for scope, table in settings.server.auth.scopes.items() if known else ():
        for pattern in _unmatched(table.names if isinstance(table, Scope) else table, known):
            hint = did_you_mean(pattern.strip("*?"), known) or "; see `standards-mcp tools`"
            message = f"{pattern!r} matches no tool, prompt or resource{hint}"
            yield Problem(("server", "auth", "scopes", scope), message)


def _limits(settings: Settings) -> Iterator[Problem]:
    """Yield the keys of isolated plugins that have no effect."""
    for name, section in settings.plugins.items():
        why = ""
        if not section.is_isolated:
            why = "it is for a plugin in a process of its own; set isolate = true"
            if "env" in section.model_fields_set:
                yield Problem(("plugins", name, "env"), why)
        elif sys.platform != "linux":
            why = f"it has no effect on {platform.system()}; only Linux holds a process to it"
        for key in ("memory", "processes") if why else ():
            if key in section.model_fields_set:
                yield Problem(("plugins", name, key), why)


def _of_kind(
    settings: Settings, kind: Kind, names: Collection[str], profiles: Iterable[str]
) -> Iterator[Problem]:
    for table, rules in settings.rules(kind, profiles):
        for key, patterns in (("enable", rules.enable), ("disable", rules.disable)):
            for pattern in _unmatched(patterns, names):
                yield Problem((*table, key), no_match(pattern, kind, names))
    for name in getattr(settings, kind).overrides:
        if name not in names:
            yield Problem((kind, "overrides", name), no_match(name, kind, names))


def _perhaps_of(failed: Collection[str]) -> str:
    if not failed:
        return ""
    return f" (it may be one of a plugin that failed: {', '.join(sorted(failed))})"


def _unmatched(patterns: Iterable[str], names: Collection[str]) -> list[str]:
    return [each for each in patterns if each != "*" and not first_match(names, (each,))]


def check_secrets(models: Mapping[str, type[BaseModel]], layers: Layers) -> Iterator[Problem]:
    """Yield the secrets of plugins that are set outside the environment and ``.env``.

    The secrets of an isolated plugin are not found: only its own process knows which they are.

    Args:
        models: The settings models of plugins, by the plugins' names.
    """
    for layer in layers.ordered:
        if layer.has_variables:
            continue
        for name, model in models.items():
            table, own = ("plugins", name), plugin_variables(model)
            for path, value in leaves(layer.value(table) if layer.sets(table) else {}):
                if declares_secret(model, path, value):
                    named = (own[path[:n]] for n in range(len(path), 0, -1) if path[:n] in own)
                    yield misplaced_secret(layer, (*table, *path), next(named, None))


def check_programs(settings: Settings) -> Iterator[Problem]:
    """Yield the programs of enabled servers, and interpreters of plugins, that do not exist.

    A server with a PATH of its own is left out: its program is looked for there when it starts.
    """
    named = [
        (("servers", name, "command"), server.command, "a program", server.cwd)
        for name, server in settings.servers.items()
        if server.enabled and server.command and "PATH" not in server.env
    ] + [
        (("plugins", name, "python"), plugin.python, "an interpreter", None)
        for name, plugin in settings.plugins.items()
        if plugin.enabled is not False and plugin.python
    ]
    for path, program, what, folder in named:
        if why := why_not_found(program, None, folder):
            fix = f"set {key_name(path)} to the whole path of {what} that is there"
            yield Problem(path, f"{program!r} cannot be started: {why}", fix)


def check_addresses(settings: Settings) -> Iterator[Problem]:
    """Yield malformed addresses of enabled servers, except addresses with a variable."""
    for name, server in settings.servers.items():
        if server.enabled and server.url and not server.url.startswith(_ADDRESSES):
            yield Problem(("servers", name, "url"), "input should begin with https:// or http://")


def check_folders(settings: Settings) -> Iterator[Problem]:
    """Yield ``state_dir`` if it cannot be opened and, since its parent is missing, made."""
    folder, path = settings.state_dir, ("state_dir",)
    if folder is None or folder.is_dir():
        return
    if folder.exists():
        why = f"{folder} is no folder"
    elif not folder.parent.is_dir():
        why = f"there is no folder {folder.parent}, in which it would be made"
    else:
        return
    yield Problem(path, f"{why}; correct the path, or make the folder", f"set {key_name(path)}")


def why_not_found(program: str, path: str | None, folder: Path | None = None) -> str:
    """Return why a program cannot be started and what to do, or an empty string if it is there.

    Args:
        path: Where programs are looked for, as PATH has it; None for that of this process.
        folder: Where it is started; by default the working directory.
    """
    if folder and not folder.is_dir():
        return f"its cwd {folder} is no folder; make it, or correct cwd"
    by_name = not os.path.dirname(program)  # noqa: PTH120  - `Path` drops the dot of ./server
    path_or_name = program if by_name else os.path.join(folder or os.curdir, program)  # noqa: PTH118
    if shutil.which(path_or_name, path=path):
        return ""
    if by_name:
        return _why_not_on_path(program, path)
    if Path(path_or_name).exists():
        return (
            f"{path_or_name} is no program; make it executable, or name what runs it as the "
            "command and the file among its arguments"
        )
    if Path(program).is_absolute():
        return "it is not there; correct its path, or install it"
    where = str(folder) if folder else f"{Path.cwd()}, which is where this host runs"
    return f"it is not in {where}; give its whole path"


def _why_not_on_path(program: str, path: str | None) -> str:
    first, _, rest = program.partition(" ")
    if rest and shutil.which(first, path=path):
        return f"no program has this name; write {first!r} alone, and the rest as a list into args"
    looked_in = os.environ.get("PATH", os.defpath) if path is None else path
    return (
        f"no such program is on PATH, which is {looked_in} here and may be another one where a "
        "desktop client starts the host; give its whole path, or install it"
    )
