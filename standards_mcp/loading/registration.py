"""Read the contributions and commands of a plugin; each name has one owner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

import click

from standards_mcp._utils.text import json_copy
from standards_mcp.contributions.arguments import filter_arguments
from standards_mcp.contributions.base import Contribution, conflict
from standards_mcp.contributions.prompts import read_prompt
from standards_mcp.contributions.resources import read_resource
from standards_mcp.contributions.routes import read_route
from standards_mcp.contributions.schemas import SchemaError
from standards_mcp.contributions.selection import Contributions, RegisteredFilter
from standards_mcp.contributions.skills import files_of, read_skill
from standards_mcp.contributions.tools import filter_error, own_filter, read_tool
from standards_mcp.decorators import declarations, declared
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Prompt, Resource, Skill, Tool

# The limit also ends a generator without an end, and clients do not show so many tools.
MAX_CONTRIBUTIONS: Final = 1000
"""The most tools, prompts, resources or skills of a plugin; each adds a millisecond to a start."""
MAX_FILTERS: Final = 100
"""The most filters of a plugin; each adds an argument to tools, whose schemas have a limit."""
_C = TypeVar("_C", bound=Contribution)

CallHook: TypeAlias = Callable[[str], list[Any]]
"""Calls one hook of the plugin and returns the results of its implementations."""


def register(name: str, plugin: object, call: CallHook, others: Contributions) -> Contributions:
    """Return the contributions of a plugin but its filters: of its methods, then its hooks.

    Args:
        name: The plugin's name.
        others: The contributions of the plugins before it.

    Raises:
        PluginError: Some clients would refuse a contribution, or there are too many.
        PluginConflictError: A name or a URI is taken.
    """

    def each(kind: type[Tool | Prompt | Resource | Skill], hook: str) -> Iterator[object]:
        yield from declarations(plugin, kind)
        for item in _returned(name, call, hook):
            yield from declared(item, kind)

    tools = _read(name, each(Tool, "register_tools"), read_tool, others.tools)
    prompts = _read(name, each(Prompt, "register_prompts"), read_prompt, others.prompts)
    resource_items = each(Resource, "register_resources")
    skills = _read(name, each(Skill, "register_skills"), read_skill, others.skills)
    resources = _read(name, resource_items, read_resource, others.resources) + files_of(skills)
    owners = {item.resource.uri: item.plugin for item in others.resources}
    for item in resources:
        if owner := owners.get(item.resource.uri):
            raise conflict(name, owner, f"resource {item.resource.uri!r}")
        owners[item.resource.uri] = name
    # Other paths begin with the plugin's name, so routes of two plugins never clash.
    pages = [item for item in others.routes if item.route.is_page]
    routes = _read(name, _returned(name, call, "register_routes"), read_route, pages)
    return Contributions(tools, prompts, resources, routes=routes, skills=skills)


def register_filters(
    plugin: str, call: CallHook, others: Contributions
) -> tuple[RegisteredFilter, ...]:
    """Return the filters of a plugin.

    Args:
        others: The contributions of all plugins so far.

    Raises:
        PluginError: A filter cannot be used, or does not fit the tools of another plugin.
        PluginConflictError: The name of a filter is taken.
    """
    own: list[RegisteredFilter] = []
    owners = {item.name: item.plugin for item in others.filters}
    for item in _returned(plugin, call, "register_filters"):
        if why := filter_error(item):
            raise PluginError(plugin, why)
        if owner := owners.get(item.name):
            raise conflict(plugin, owner, f"filter {item.name!r}")
        owners[item.name] = plugin
        own.append(RegisteredFilter(plugin, own_filter(plugin, item)))
        if len(own) > MAX_FILTERS:
            raise PluginError(plugin, f"it declares more than {MAX_FILTERS} filters")
    if own:
        _try_filters(plugin, others, own)
    return tuple(own)


def with_filters(
    contributions: Contributions, filters: Iterable[RegisteredFilter]
) -> Contributions:
    """Return *contributions* with *filters* added to every tool that accepts filters."""
    plain = tuple(each.filter for each in filters)
    tools = tuple(tool.with_filters_or_error(plain) for tool in contributions.tools)
    return contributions if tools == contributions.tools else contributions._replace(tools=tools)


def _try_filters(plugin: str, others: Contributions, own: Sequence[RegisteredFilter]) -> None:
    """Check that the filters have valid schemas, and fit every tool that accepts filters."""
    filters = tuple(each.filter for each in (*others.filters, *own))
    accepting = [item for item in others.tools if item.tool.accepts_filters]
    if not accepting:
        _check_each(plugin, own)
    for item in accepting:
        try:
            item.with_filters(filters)
        except SchemaError as exc:
            _check_each(plugin, own)  # a filter that fits no tool is reported first
            what = f"its filters do not fit tool {item.tool.name!r} of {item.plugin!r}"
            raise PluginError(plugin, f"{what}: {exc}") from exc


def _check_each(plugin: str, own: Iterable[RegisteredFilter]) -> None:
    for each in own:
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
    """Return the registered items of one kind; their names must be unique."""
    owners = {name: other.plugin for other in others for name in other.names}
    accepted: list[_C] = []
    for each in items:
        item = read(plugin, each)
        for name in item.names:
            if owner := owners.get(name):
                raise conflict(plugin, owner, f"{item.kind} {item.declared!r}")
        owners |= dict.fromkeys(item.names, plugin)
        try:
            json_copy(item.definition)
        except ValueError as exc:
            why = f"{item.kind} {item.declared!r}: its definition is not JSON: {exc}"
            raise PluginError(plugin, why) from None
        accepted.append(item)
        # Counted on the way, so that an endless generator is stopped, too.
        if len(accepted) > MAX_CONTRIBUTIONS:
            raise PluginError(plugin, f"it declares more than {MAX_CONTRIBUTIONS} {item.kind}s")
    return tuple(accepted)


def _returned(plugin: str, call: CallHook, hook: str) -> Iterator[Any]:
    """Yield the declarations of one hook.

    Raises:
        PluginError: The hook returned something that is not iterable.
    """
    for items in call(hook):
        if not isinstance(items, Iterable):
            raise PluginError(plugin, f"{hook} returned a {type(items).__name__}; return a list")
        yield from items


def read_commands(
    plugin: str, items: Sequence[object], taken: Collection[str], *, is_own: bool = False
) -> dict[str, click.Command]:
    """Return the command or group of a plugin by its name; an empty dict without commands.

    Args:
        taken: The names of the host's own commands.
        is_own: True if the plugin comes with the host. If it has only one command, the name of the
            command may differ from the plugin's.

    Raises:
        PluginError: An item is not a command, or the host has a command with the plugin's name.
        PluginConflictError: Two commands have the same name.
    """
    if wrong := [item for item in items if not isinstance(item, click.Command)]:
        raise PluginError(plugin, f"register_commands returned a {type(wrong[0]).__name__}")
    commands = cast("Sequence[click.Command]", items)
    if commands and plugin in taken:
        why = f"`standards-mcp {plugin}` is the host's own, so a plugin {plugin!r} adds no commands"
        raise PluginError(plugin, why)
    names = [item.name for item in commands]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise conflict(plugin, plugin, f"command {twice!r}")
    if names == [plugin] or (is_own and len(names) == 1):
        return {names[0] or plugin: commands[0]}
    if not commands:
        return {}
    short_help = f"Commands: {', '.join(sorted(filter(None, names)))}."
    text = f"Commands of the plugin {plugin}."
    return {plugin: click.Group(plugin, commands=commands, help=text, short_help=short_help)}
