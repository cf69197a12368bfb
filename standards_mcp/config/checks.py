"""Finds keys that have no effect, such as a misspelt pattern, and secrets that others can read."""

from __future__ import annotations

import platform
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import BaseModel

from standards_mcp._utils.secrets import declares_secret
from standards_mcp._utils.text import did_you_mean

from .errors import Problem, misplaced_secret
from .layers import Layers, leaves
from .models.http import Scope
from .models.settings import Settings
from .models.tools import Kind, first_match
from .plugin_values import plugin_variables
from .trust import is_trusted

_LISTED_BY: Final = {"distributions": "plugins list --json", "plugins": "plugins list"}


@dataclass(frozen=True, slots=True)
class Names:
    """What patterns can match: all names of contributions, plugins and their distributions.

    Attributes:
        failed: The plugins that failed, so that their contributions are not known.
    """

    contributions: Mapping[Kind, Collection[str]]
    plugins: Collection[str]
    distributions: Collection[str]
    failed: Collection[str] = ()


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
    """Yield the globs of scopes that give nothing; nobody knows where not all names are known."""
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
                    yield misplaced_secret(layer, (*table, *path), own.get(path[0]))
