"""Reads what a plugin contributes; each name has one owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from standards_mcp._utils.text import json_copy
from standards_mcp.contributions.arguments.schemas import SchemaError
from standards_mcp.contributions.arguments.signatures import filter_arguments
from standards_mcp.contributions.base import Contribution, conflict
from standards_mcp.contributions.collection import Contributions, RegisteredFilter
from standards_mcp.contributions.filters import filter_error, own_filter
from standards_mcp.contributions.prompts import read_prompt
from standards_mcp.contributions.resources import read_resource
from standards_mcp.contributions.routes import read_route
from standards_mcp.contributions.tools import read_tool
from standards_mcp.decorators import declarations, declared
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Prompt, Resource, Tool

MAX_CONTRIBUTIONS: Final = 1000
"""Tools, prompts or resources of one plugin; each takes about a millisecond of every start."""
MAX_FILTERS: Final = 100
"""Filters of one plugin; each is an argument of several tools, whose schemas have a limit, too."""
_C = TypeVar("_C", bound=Contribution)

CallHook: TypeAlias = Callable[[str], list[Any]]
"""Calls one hook of the plugin and returns what its implementations return."""


def register(name: str, plugin: object, call: CallHook, others: Contributions) -> Contributions:
    """Return what a plugin contributes but filters: that of its methods, then of its hooks.

    Args:
        name: The plugin's name.
        others: What the plugins contribute that were loaded before it.

    Raises:
        PluginError: Some clients would not accept one, or there are too many.
        PluginConflictError: A name or a URI is taken.
    """

    def each(kind: type[Tool | Prompt | Resource], hook: str) -> Iterator[object]:
        yield from declarations(plugin, kind)
        for item in _returned(name, call, hook):
            yield from declared(item, kind)

    tools = _read(name, each(Tool, "register_tools"), read_tool, others.tools)
    prompts = _read(name, each(Prompt, "register_prompts"), read_prompt, others.prompts)
    found = each(Resource, "register_resources")
    resources = _read(name, found, read_resource, others.resources)
    owners = {item.resource.uri: item.plugin for item in others.resources}
    for item in resources:
        if owner := owners.get(item.resource.uri):
            raise conflict(name, owner, f"resource {item.resource.uri!r}")
        owners[item.resource.uri] = name
    # Their paths are below the name of the plugin, so that those of others never clash.
    routes = _read(name, _returned(name, call, "register_routes"), read_route, ())
    return Contributions(tools, prompts, resources, routes=routes)


def register_filters(
    plugin: str, call: CallHook, others: Contributions
) -> tuple[RegisteredFilter, ...]:
    """Return the filters of a plugin.

    Args:
        others: The contributions of all plugins so far.

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
        if len(found) > MAX_FILTERS:
            raise PluginError(plugin, f"it declares more than {MAX_FILTERS} filters")
    if found:
        _try_filters(plugin, others, found)
    return tuple(found)


def with_filters(item: Contributions, filters: Iterable[RegisteredFilter]) -> Contributions:
    """Return contributions with *filters* given to every tool that accepts filters."""
    taken = tuple(each.filter for each in filters)
    tools = tuple(tool.with_filters_or_error(taken) for tool in item.tools)
    return item if tools == item.tools else replace(item, tools=tools)


def _try_filters(plugin: str, others: Contributions, found: Sequence[RegisteredFilter]) -> None:
    """Check that filters can be described and fit all tools: they must not break a tool."""
    filters = tuple(each.filter for each in (*others.filters, *found))
    accepting = [item for item in others.tools if item.tool.accepts_filters]
    if not accepting:
        _check_each(plugin, found)
    for item in accepting:
        try:
            item.with_filters(filters)
        except SchemaError as exc:
            _check_each(plugin, found)  # it may be one of them, whatever the tool
            what = f"its filters do not fit tool {item.tool.name!r} of {item.plugin!r}"
            raise PluginError(plugin, f"{what}: {exc}") from exc


def _check_each(plugin: str, found: Iterable[RegisteredFilter]) -> None:
    for each in found:
        try:
            filter_arguments((each.filter,))
        except SchemaError as exc:
            raise PluginError(plugin, f"filter {each.name!r}: {exc}") from exc


def _read(
    plugin: str,
    items: Iterable[object],
    read: Callable[[str, object], _C],
    others: Iterable[_C],
) -> tuple[_C, ...]:
    """Return what a plugin declares of one kind, under names that nobody else has."""
    owners = {name: other.plugin for other in others for name in other.names}
    found: list[_C] = []
    for each in items:
        item = read(plugin, each)
        for name in item.names:
            if owner := owners.get(name):
                raise conflict(plugin, owner, f"{item.kind} {item.declared!r}")
        owners |= dict.fromkeys(item.names, plugin)
        try:
            json_copy(item.definition)
        except ValueError as exc:
            why = f"{item.kind} {item.declared!r}: what clients see of it is not JSON: {exc}"
            raise PluginError(plugin, why) from None
        found.append(item)
        # Counted on the way, so that a generator without an end is stopped, too.
        if len(found) > MAX_CONTRIBUTIONS:
            raise PluginError(plugin, f"it declares more than {MAX_CONTRIBUTIONS} {item.kind}s")
    return tuple(found)


def _returned(plugin: str, call: CallHook, hook: str) -> Iterator[Any]:
    """Yield what a plugin declares by one hook.

    Raises:
        PluginError: It returned something that is not iterable.
    """
    for items in call(hook):
        if not isinstance(items, Iterable):
            raise PluginError(plugin, f"{hook} returned a {type(items).__name__}; return a list")
        yield from items
