"""From what plugins contribute to what clients see: a pure function.

The configuration decides, and who asks; plugins are not asked again, so both can differ while they
run. An override that cannot be applied keeps what it is for from being served: one that hides an
argument must not be without effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar

from standards_mcp.config.errors import Problem
from standards_mcp.config.layers import key_name
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import (
    Kind,
    Override,
    ToolOverride,
    ToolRules,
    first_match,
)

from .base import Contribution
from .collection import Contributions, RegisteredFilter
from .overrides import argument_fault, overridden_arguments
from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .tools import Limits, RegisteredTool

_C = TypeVar("_C", bound=Contribution)


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody sees of what the configuration lets everybody see; it can only narrow that.

    Attributes:
        names: Globs over the names of tools, prompts and resources.
        profiles: The names of profiles that apply, beside the one that is in force for all.
    """

    names: tuple[str, ...] = ("*",)
    profiles: tuple[str, ...] = ()


EVERYTHING: Final = Access()


@dataclass(frozen=True)
class Selection:
    """What plugins contribute, as the configuration makes it, with what it hides and why.

    Attributes:
        problems: The overrides that cannot be applied.
    """

    tools: tuple[RegisteredTool, ...]
    prompts: tuple[RegisteredPrompt, ...]
    resources: tuple[RegisteredResource, ...]
    problems: tuple[Problem, ...]

    @cached_property
    def visible_tools(self) -> list[RegisteredTool]:
        """The tools that clients see, in a stable order."""
        return visible(self.tools)

    @property
    def definitions(self) -> dict[Kind, list[dict[str, Any]]]:
        """What clients see, by the kind of thing."""
        return {
            kind: [item.definition for item in visible(items)] for kind, items in self._by_kind()
        }

    @property
    def names(self) -> dict[Kind, set[str]]:
        """All names of each kind of thing, hidden or not."""
        return {
            kind: {name for item in items for name in item.names} for kind, items in self._by_kind()
        }

    def find(self, name: str) -> RegisteredTool | None:
        """Return the tool of any of its names."""
        return self._tools_by_name.get(name)

    def tool_names(self, declared: Collection[str]) -> dict[str, str]:
        """Return the names that clients see of those of these tools that are visible."""
        found = (item for item in self.visible_tools if item.declared in declared)
        return {item.declared: item.published for item in found}

    @cached_property
    def _tools_by_name(self) -> dict[str, RegisteredTool]:
        return _by_name(self.tools)

    def _by_kind(
        self,
    ) -> tuple[
        tuple[Kind, tuple[RegisteredTool | RegisteredPrompt | RegisteredResource, ...]], ...
    ]:
        return ("tools", self.tools), ("prompts", self.prompts), ("resources", self.resources)


def visible(items: Iterable[_C]) -> list[_C]:
    """Return what the configuration lets clients see."""
    return [item for item in items if not item.hidden_reason]


def named(items: Iterable[_C], name: str) -> _C | None:
    """Return the item that has this among its names."""
    return _by_name(items).get(name)


def _by_name(items: Iterable[_C]) -> dict[str, _C]:
    """Return whose each name is; what has a name of something else gives way to it."""
    owners: dict[str, _C] = {}
    for item in sorted(items, key=_has_conflict):
        for name in item.names:
            owners.setdefault(name, item)
    return owners


def select(
    contributions: Contributions, settings: Settings, access: Access = EVERYTHING
) -> Selection:
    """Return what is visible of what plugins contribute, with *access* to it."""
    problems: list[Problem] = []
    rules = _Rules(settings, access)
    filtered = [_with_filters(item, contributions.filters, rules) for item in contributions.tools]
    tools = [_as_tool(item, settings) for item in _each(filtered, "tools", rules, problems)]
    prompts = _each(contributions.prompts, "prompts", rules, problems)
    resources = _each(contributions.resources, "resources", rules, problems)
    names = {item.declared for item in visible(tools)}
    return Selection(
        tuple(tools),
        tuple(_with_its_tools(item, names) for item in prompts),
        tuple(resources),
        tuple(problems),
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """Which contributions are hidden, by the configuration and from who asks."""

    settings: Settings
    access: Access

    @property
    def profiles(self) -> tuple[str, ...]:
        return (*self.settings.profiles_in_force, *self.access.profiles)

    def plugin_hidden_reason(self, plugin: str) -> str:
        """Return why nothing of a plugin is visible, or an empty string."""
        settings = self.settings
        if settings.section(plugin).enabled is False:
            return f"[{settings.table(plugin)}] enabled = false"
        for name in self.profiles:
            if name not in settings.profiles:
                return f"there is no [profiles.{name}]"
            if not first_match((plugin,), settings.profiles[name].plugins):
                return f"[profiles.{name}] plugins has no pattern for {plugin!r}"
        return ""

    def hidden_reason(self, item: Contribution, kind: Kind) -> str:
        """Return why something is not visible, or an empty string."""
        if reason := self.plugin_hidden_reason(item.plugin):
            return reason
        for path, rules in self.settings.rules(kind, self.profiles):
            table = ".".join(path)
            # Under all of its names: a new one must not lead past a rule for an old one.
            if isinstance(rules, ToolRules) and isinstance(item, RegisteredTool):
                reason = rules.hidden_reason(item.names, table, read_only=item.tool.read_only)
            else:
                reason = rules.hidden_reason(item.names, table)
            if reason:
                return reason
        return "" if first_match(item.names, self.access.names) else "your access excludes it"


def _with_filters(
    item: RegisteredTool, filters: Iterable[RegisteredFilter], rules: _Rules
) -> RegisteredTool:
    """Return a tool without the filters of plugins of which nothing is visible."""
    if not item.filters:
        return item
    hidden = {each.name for each in filters if rules.plugin_hidden_reason(each.plugin)}
    return item.with_filters_or_error(
        tuple(each for each in item.filters if each.name not in hidden)
    )


def _each(
    contributed: Iterable[_C], kind: Kind, rules: _Rules, problems: list[Problem]
) -> list[_C]:
    """Return every item as the configuration makes it; add the overrides that do not fit."""
    declared = tuple(contributed)
    overrides: Mapping[str, Override] = getattr(rules.settings, kind).overrides
    owners = _by_name(declared)
    selected: list[_C] = []
    for item in declared:
        keys = [name for name in item.names if name in overrides]
        override = overrides[keys[0]] if keys else Override()
        problem = _override_problem(item, (kind, "overrides", *keys), override, owners)
        if problem:
            message = f"{problem.message}; the {item.kind} is not served"
            problems.append(Problem(problem.path, message))
        changed = _overridden(item, override, rules.settings)
        reason = _error(item, override) or rules.hidden_reason(changed, kind)
        if problem and not reason:
            reason = f"{key_name(problem.path)}: {problem.message}"
        selected.append(replace(changed, hidden_reason=reason))
        owners.setdefault(changed.published, item)
    return selected


def _has_conflict(item: Contribution) -> bool:
    """Tell whether something has a name that belongs to something else."""
    return isinstance(item, RegisteredTool) and bool(item.conflict)


def _error(item: Contribution, override: Override) -> str:
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


def _override_problem(
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
        return _tool_problem(item, override, path)
    return None


def _tool_problem(
    item: RegisteredTool, override: ToolOverride, table: tuple[str, ...]
) -> Problem | None:
    if override.cache_ttl and not item.tool.read_only:
        return Problem((*table, "cache_ttl"), "it needs a read-only tool")
    return argument_fault(item.arguments, override.arguments, (*table, "arguments"))
