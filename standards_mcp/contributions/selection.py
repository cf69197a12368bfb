"""From what plugins declare to what clients are offered: a pure function.

The configuration decides; plugins are not asked again, so it can be changed while they run. An
override that cannot be applied keeps what it is for from being served: one that hides an argument
must not be without effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from standards_mcp.config.errors import Problem
from standards_mcp.config.layers import key_name
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import Kind, Override, ToolOverride, ToolRules, first_match

from .base import Contribution
from .overrides import argument_fault, overridden_arguments
from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .tools import Limits, RegisteredTool

_C = TypeVar("_C", bound=Contribution)


@dataclass(frozen=True, slots=True)
class Registered:
    """What the loaded plugins contribute.

    Attributes:
        filters: The plugins of the filters that the tools have, by the filters' names.
    """

    tools: tuple[RegisteredTool, ...] = ()
    prompts: tuple[RegisteredPrompt, ...] = ()
    resources: tuple[RegisteredResource, ...] = ()
    filters: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Selection:
    """What plugins contribute, as the configuration makes it, served or not.

    Attributes:
        faults: The overrides that cannot be applied.
    """

    tools: tuple[RegisteredTool, ...]
    prompts: tuple[RegisteredPrompt, ...]
    resources: tuple[RegisteredResource, ...]
    faults: tuple[Problem, ...]

    @property
    def visible_tools(self) -> list[RegisteredTool]:
        """The tools that clients see, in a stable order."""
        return visible(self.tools)

    @property
    def definitions(self) -> dict[Kind, list[dict[str, Any]]]:
        """What clients see, by the kind of thing."""
        return {
            "tools": [item.definition for item in visible(self.tools)],
            "prompts": [item.definition for item in visible(self.prompts)],
            "resources": [item.definition for item in visible(self.resources)],
        }

    @property
    def names(self) -> dict[Kind, set[str]]:
        """All names of each kind of thing, served or not."""
        return {
            "tools": _all_names(self.tools),
            "prompts": _all_names(self.prompts),
            "resources": _all_names(self.resources),
        }

    def find(self, name: str) -> RegisteredTool | None:
        """Return the tool of any of its names."""
        return self._tools_by_name.get(name)

    @cached_property
    def _tools_by_name(self) -> dict[str, RegisteredTool]:
        return _by_name(self.tools)

    def tool_names(self, declared: Iterable[str]) -> dict[str, str]:
        """Return the names that clients see of those of these tools that are served."""
        return {
            item.declared: item.published
            for item in self.visible_tools
            if item.declared in declared
        }


def visible(items: Iterable[_C]) -> list[_C]:
    """Return what the configuration lets clients see."""
    return [item for item in items if not item.hidden_reason]


def named(items: Iterable[_C], name: str) -> _C | None:
    """Return the item that has this among its names."""
    return _by_name(items).get(name)


def _by_name(items: Iterable[_C]) -> dict[str, _C]:
    """Return whose each name is; what bears a name of something else gives way to it."""
    owners: dict[str, _C] = {}
    for item in sorted(items, key=_clashes):
        for name in item.names:
            owners.setdefault(name, item)
    return owners


def _all_names(items: Iterable[Contribution]) -> set[str]:
    return {name for item in items for name in item.names}


def select(registered: Registered, settings: Settings) -> Selection:
    """Return what clients are offered of what is registered."""
    faults: list[Problem] = []
    filtered = [_with_filters(item, registered.filters, settings) for item in registered.tools]
    chosen = _each(filtered, "tools", settings, faults)
    tools = [_as_tool(item, settings) for item in chosen]
    prompts = _each(registered.prompts, "prompts", settings, faults)
    resources = _each(registered.resources, "resources", settings, faults)
    names = {item.declared for item in visible(tools)}
    return Selection(
        tuple(tools),
        tuple(_with_its_tools(item, names) for item in prompts),
        tuple(resources),
        tuple(faults),
    )


def _with_filters(
    item: RegisteredTool, owners: Mapping[str, str], settings: Settings
) -> RegisteredTool:
    """Return a tool without the filters of plugins of which nothing is served."""
    if not item.filters:
        return item
    kept = [each for each in item.filters if not _plugin_refusal(owners[each.name], settings)]
    return item.with_filters_or_error(tuple(kept))


def _each(
    registered: Iterable[_C], kind: Kind, settings: Settings, faults: list[Problem]
) -> list[_C]:
    """Return every item as the configuration makes it; add the overrides that do not fit."""
    declared = tuple(registered)
    overrides: Mapping[str, Override] = getattr(settings, kind).overrides
    owners = _by_name(declared)
    offered: list[_C] = []
    for item in declared:
        keys = [name for name in item.names if name in overrides]
        override = overrides[keys[0]] if keys else Override()
        fault = _override_fault(item, (kind, "overrides", *keys), override, owners)
        if fault:
            message = f"{fault.message}; the {item.kind} is not served"
            faults.append(Problem(fault.path, message))
        changed = _overridden(item, override, settings)
        refusal = _fault(item, override) or _refusal(changed, kind, settings)
        if fault and not refusal:
            refusal = f"{key_name(fault.path)}: {fault.message}"
        offered.append(replace(changed, hidden_reason=refusal))
        owners.setdefault(changed.published, item)
    return offered


def _clashes(item: Contribution) -> bool:
    """Tell whether something bears a name that belongs to something else."""
    return isinstance(item, RegisteredTool) and bool(item.conflict)


def _fault(item: Contribution, override: Override) -> str:
    """Return why something can be served under no rules, or an empty string."""
    if not isinstance(item, RegisteredTool):
        return ""
    return item.error or ("" if override.name else item.conflict)


def _overridden(item: _C, override: Override, settings: Settings) -> _C:
    as_declared = settings.tool_names == "declared"
    return replace(
        item,
        published=override.name or (item.declared if as_declared else item.portable),
        title=override.title or item.title,
        description=override.description or item.description,
    )


def _as_tool(item: RegisteredTool, settings: Settings) -> RegisteredTool:
    """Return a tool with what the configuration says of tools only."""
    overrides = settings.tools.overrides
    override = next((overrides[name] for name in item.names if name in overrides), ToolOverride())
    item = replace(item, limits=_limits(item, override, settings))
    if override.arguments and not item.hidden_reason:
        return replace(item, arguments=overridden_arguments(item.arguments, override.arguments))
    return item


def _with_its_tools(item: RegisteredPrompt, tools: Collection[str]) -> RegisteredPrompt:
    missing = next((name for name in item.prompt.needs if name not in tools), None)
    if item.hidden_reason or missing is None:
        return item
    return replace(item, hidden_reason=f"it needs the tool {missing!r}, which is not served")


def _limits(item: RegisteredTool, override: ToolOverride, settings: Settings) -> Limits:
    """Return a tool's limits: the admin's for this tool, then its author's, then those of all."""
    tools, tool = settings.tools, item.tool
    ttl = tool.cache_ttl if override.cache_ttl is None else override.cache_ttl
    return Limits(
        timeout=override.timeout or tool.timeout or tools.timeout,
        rate_limit=override.rate_limit or tools.rate_limit,
        cache_ttl=ttl,
        concurrency=override.concurrency,
        plugin_concurrency=tools.concurrency,
        max_output_tokens=override.max_output_tokens or tools.max_output_tokens,
    )


def _plugin_refusal(plugin: str, settings: Settings) -> str:
    """Return why nothing of a plugin is served, or an empty string."""
    if settings.section(plugin).enabled is False:
        return f"[{settings.table(plugin)}] enabled = false"
    if settings.profile:
        patterns = settings.profiles[settings.profile].plugins
        if not first_match((plugin,), patterns):
            return f"[profiles.{settings.profile}] plugins has no pattern for {plugin!r}"
    return ""


def _refusal(item: Contribution, kind: Kind, settings: Settings) -> str:
    """Return why the rules keep something from being served, or an empty string."""
    if reason := _plugin_refusal(item.plugin, settings):
        return reason
    for path, rules in settings.rules(kind, settings.profiles_in_force):
        table = ".".join(path)
        # Under all of its names: a new one must not lead past a rule for an old one.
        if isinstance(rules, ToolRules) and isinstance(item, RegisteredTool):
            reason = rules.hidden_reason(item.names, table, read_only=item.tool.read_only)
        else:
            reason = rules.hidden_reason(item.names, table)
        if reason:
            return reason
    return ""


def _override_fault(
    item: Contribution,
    path: tuple[str, ...],
    override: Override,
    owners: Mapping[str, Contribution],
) -> Problem | None:
    """Return why an override cannot be applied, with the key that is to blame.

    Args:
        path: The keys of the table of overrides, then the names under which it has the item.
        owners: Whose each name is.
    """
    path, others = path[:3], path[3:]
    if others:
        return Problem(path, f"{others[0]!r} overrides the same {item.kind}; keep one of the two")
    if override.name and owners.get(override.name, item) is not item:
        return Problem((*path, "name"), f"{override.name!r} belongs to another {item.kind}")
    if isinstance(item, RegisteredTool) and isinstance(override, ToolOverride):
        return _tool_fault(item, override, path)
    return None


def _tool_fault(
    item: RegisteredTool, override: ToolOverride, table: tuple[str, ...]
) -> Problem | None:
    if override.cache_ttl and not item.tool.read_only:
        return Problem((*table, "cache_ttl"), "it needs a read-only tool")
    return argument_fault(item.arguments, override.arguments, (*table, "arguments"))
