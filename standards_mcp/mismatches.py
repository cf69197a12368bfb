"""Patterns and names in the configuration that match nothing: a misspelt rule has no effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from .discovery import is_trusted
from .errors import did_you_mean
from .settings import Settings
from .tool_settings import Selection, first_match

_LISTED_BY: Final = {
    "distribution": "plugins list --json",
    "plugin": "plugins list",
    "tool": "tools",
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A key of the configuration that has not the effect that it is there for.

    Attributes:
        path: The keys that lead to it.
    """

    path: tuple[str, ...]
    message: str


def no_match(
    pattern: str, kind: Literal["distribution", "plugin", "tool"], names: Iterable[str]
) -> str:
    """Return the sentence that a glob matches none of these names, with the nearest of them."""
    hint = did_you_mean(pattern.strip("*?"), names)
    return f"{pattern!r} matches no {kind}{hint or f'; see `standards-mcp {_LISTED_BY[kind]}`'}"


@dataclass(frozen=True, slots=True)
class Names:
    """What patterns can match: all names of the tools, plugins and their distributions."""

    tools: frozenset[str]
    plugins: frozenset[str]
    distributions: frozenset[str]


def mismatches(settings: Settings, names: Names, profiles: Iterable[str]) -> Iterator[Mismatch]:
    """Yield what matches nothing in the rules for all and in these profiles."""
    for pattern in settings.trusted:
        if pattern != "*" and not any(is_trusted(each, (pattern,)) for each in names.distributions):
            message = no_match(pattern, "distribution", names.distributions)
            yield Mismatch(("trusted",), message)
    yield from _in_rules(("tools",), settings.tools, names.tools)
    for name in settings.tools.overrides:
        if name not in names.tools:
            yield Mismatch(("tools", "overrides", name), no_match(name, "tool", names.tools))
    for profile in profiles:
        table, rules = ("profiles", profile), settings.profiles[profile]
        yield from _in_rules(table, rules, names.tools)
        for pattern in _unmatched(rules.plugins, names.plugins):
            yield Mismatch((*table, "plugins"), no_match(pattern, "plugin", names.plugins))


def _in_rules(
    table: tuple[str, ...], rules: Selection, names: Collection[str]
) -> Iterator[Mismatch]:
    for key, patterns in (("enable", rules.enable), ("disable", rules.disable)):
        for pattern in _unmatched(patterns, names):
            yield Mismatch((*table, key), no_match(pattern, "tool", names))


def _unmatched(patterns: Iterable[str], names: Collection[str]) -> list[str]:
    return [each for each in patterns if each != "*" and not first_match(names, (each,))]
