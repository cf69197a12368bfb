"""Reads what a plugin contributes by its hooks; each name has one owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from standards_mcp.contributions.base import Contribution, conflict
from standards_mcp.contributions.collection import Contributions, RegisteredFilter
from standards_mcp.contributions.filters import filter_error, own_filter
from standards_mcp.contributions.prompts import read_prompt
from standards_mcp.contributions.resources import read_resource
from standards_mcp.contributions.schemas import SchemaError
from standards_mcp.contributions.tools import RegisteredTool, read_tool
from standards_mcp.errors import PluginError

MAX_CONTRIBUTIONS: Final = 1000
"""Tools, prompts or resources of one plugin; each takes about a millisecond of every start."""
_C = TypeVar("_C", bound=Contribution)

CallHook: TypeAlias = Callable[[str], list[Any]]
"""Calls one hook of the plugin and returns what its implementations return."""


def register(plugin: str, call: CallHook, others: Contributions) -> Contributions:
    """Return the tools, prompts and resources of a plugin.

    Args:
        others: What the plugins contribute that were loaded before it.

    Raises:
        PluginError: One cannot be published to every client, or there are too many.
        PluginConflictError: One has a name or a URI that is taken.
    """
    tools = _read(plugin, call, "register_tools", read_tool, others.tools)
    prompts = _read(plugin, call, "register_prompts", read_prompt, others.prompts)
    resources = _read(plugin, call, "register_resources", read_resource, others.resources)
    owners = {item.resource.uri: item.plugin for item in others.resources}
    for item in resources:
        if owner := owners.get(item.resource.uri):
            raise conflict(plugin, owner, f"resource {item.resource.uri!r}")
        owners[item.resource.uri] = plugin
    return Contributions(tools, prompts, resources)


def register_filters(
    plugin: str, call: CallHook, others: Contributions
) -> tuple[RegisteredFilter, ...]:
    """Return the filters of a plugin.

    Args:
        others: What all plugins contribute so far.

    Raises:
        PluginError: One cannot be used, or does not fit the tools of another plugin.
        PluginConflictError: One has a name that is taken.
    """
    found: list[RegisteredFilter] = []
    owners = {item.name: item.plugin for item in others.filters}
    for item in _returned(plugin, call, "register_filters"):
        if why := filter_error(item):
            raise PluginError(plugin, why)
        if owner := owners.get(item.name):
            raise conflict(plugin, owner, f"filter {item.name!r}")
        owners[item.name] = plugin
        found.append(RegisteredFilter(plugin, own_filter(plugin, item)))
    if found:
        _try_filters(plugin, others.tools, (*others.filters, *found))
    return tuple(found)


def with_filters(item: Contributions, filters: Iterable[RegisteredFilter]) -> Contributions:
    """Return contributions of which every tool that accepts filters has these."""
    taken = tuple(each.filter for each in filters)
    tools = tuple(tool.with_filters_or_error(taken) for tool in item.tools)
    return item if tools == item.tools else replace(item, tools=tools)


def _try_filters(
    plugin: str, tools: Iterable[RegisteredTool], filters: tuple[RegisteredFilter, ...]
) -> None:
    """See that other plugins' tools can take the filters: who adds one must not break them."""
    for item in tools:
        if item.tool.accepts_filters:
            try:
                item.with_filters(tuple(each.filter for each in filters))
            except SchemaError as exc:
                what = f"its filters do not fit tool {item.tool.name!r} of {item.plugin!r}"
                raise PluginError(plugin, f"{what}: {exc}") from exc


def _read(
    plugin: str,
    call: CallHook,
    hook: str,
    read: Callable[[str, object], _C],
    others: Iterable[_C],
) -> tuple[_C, ...]:
    """Return what a plugin declares by one hook, under names that nobody else has."""
    owners = {name: other.plugin for other in others for name in other.names}
    found: list[_C] = []
    for each in _returned(plugin, call, hook):
        item = read(plugin, each)
        for name in item.names:
            if owner := owners.get(name):
                raise conflict(plugin, owner, f"{item.kind} {item.declared!r}")
        owners |= dict.fromkeys(item.names, plugin)
        found.append(item)
        if len(found) > MAX_CONTRIBUTIONS:
            raise PluginError(plugin, f"it declares more than {MAX_CONTRIBUTIONS} {item.kind}s")
    return tuple(found)


def _returned(plugin: str, call: CallHook, hook: str) -> Iterator[Any]:
    """Yield what a plugin declares by one hook.

    Raises:
        PluginError: It returned something else than several things.
    """
    for items in call(hook):
        if not isinstance(items, Iterable):
            raise PluginError(plugin, f"{hook} returned a {type(items).__name__}; return a list")
        yield from items
