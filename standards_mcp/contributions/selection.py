"""Select the contributions that a client may see, by the configuration and the caller.

The selection is a pure function, so the configuration can change while plugins run. An item whose
override cannot be applied is not served: the override may hide an argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, TypeVar

from standards_mcp.config.layers import key_name
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import (
    Kind,
    Override,
    ToolOverride,
    ToolRules,
    first_match,
)
from standards_mcp.config.problems import Problem
from standards_mcp.plugin import Filter

from .base import Contribution
from .overrides import (
    apply_override,
    item_limits,
    overridden_arguments,
    override_problem,
    route_limits,
)
from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .routes import RegisteredRoute
from .skills import RegisteredSkill
from .tool_search import (
    CALL_TOOL,
    SEARCH_TOOLS,
    OpenRanking,
    ToolSearch,
    needs_search,
    shared_words,
    with_always_load,
)
from .tools import RegisteredTool

_C = TypeVar("_C", bound=Contribution)
_Item = TypeVar("_Item", bound=RegisteredTool | RegisteredPrompt | RegisteredResource)
_TOOL_IN_BRACES: Final = re.compile(r"\{([A-Za-z][\w.-]*)\}")


class RegisteredFilter(NamedTuple):
    """A filter and the plugin that registered it."""

    plugin: str
    filter: Filter

    @property
    def name(self) -> str:
        """The name of the argument that tools get."""
        return self.filter.name


class Contributions(NamedTuple):
    """Contributions of plugins in a stable order; a new kind of contribution is a new field."""

    tools: tuple[RegisteredTool, ...] = ()
    prompts: tuple[RegisteredPrompt, ...] = ()
    resources: tuple[RegisteredResource, ...] = ()
    filters: tuple[RegisteredFilter, ...] = ()
    routes: tuple[RegisteredRoute, ...] = ()
    skills: tuple[RegisteredSkill, ...] = ()

    def __bool__(self) -> bool:
        return any(self)

    @classmethod
    def merged(cls, parts: Iterable[Contributions]) -> Contributions:
        """Return all of *parts* as one."""
        return cls(*(tuple(chain.from_iterable(kind)) for kind in zip(*parts, strict=True)))


# Several people may use one server and see different items.
class Access(NamedTuple):
    """The access of a caller; it can only narrow the configuration.

    Attributes:
        names: Globs over the names of tools, prompts, resources and skills.
        profiles: The names of profiles that apply in addition to the general one.
    """

    names: tuple[str, ...] = ("*",)
    profiles: tuple[str, ...] = ()


EVERYTHING: Final = Access()


@dataclass(frozen=True, eq=False)
class Selection:
    """All contributions with the configuration applied; hidden items have a `hidden_reason`.

    Attributes:
        problems: The overrides that cannot be applied.
        search: The search for tools, or None if clients list all tools.
        is_structured: True if answers have structured content, and definitions an output schema.
    """

    tools: tuple[RegisteredTool, ...]
    prompts: tuple[RegisteredPrompt, ...]
    resources: tuple[RegisteredResource, ...]
    skills: tuple[RegisteredSkill, ...]
    routes: tuple[RegisteredRoute, ...]
    problems: tuple[Problem, ...]
    search: ToolSearch | None = None
    is_structured: bool = True

    @cached_property
    def visible_tools(self) -> list[RegisteredTool]:
        """The tools that the caller may use, in a stable order."""
        return visible(self.tools)

    @cached_property
    def listed_tools(self) -> list[RegisteredTool]:
        """The tools in the list for clients, in a stable order."""
        return [*self.search.own, *self.search.listed] if self.search else self.visible_tools

    @cached_property
    def serving(self) -> frozenset[str]:
        """The plugins and servers with a visible contribution."""
        return frozenset(item.plugin for _, items in self._by_kind() for item in visible(items))

    @property
    def names(self) -> dict[Kind, set[str]]:
        """All names of each kind, hidden items included."""
        return {
            kind: {name for item in items for name in item.names} for kind, items in self._by_kind()
        }

    def find(self, name: str) -> RegisteredTool | None:
        """Return the tool with this name, declared, portable or published, or None."""
        return self._tools_by_name.get(name)

    def tool_names(self, declared: Collection[str]) -> dict[str, str]:
        """Map the names in *declared* to published names, for visible tools only."""
        tools = (item for item in self.visible_tools if item.declared in declared)
        return {item.declared: item.published for item in tools}

    @cached_property
    def _tools_by_name(self) -> dict[str, RegisteredTool]:
        return _by_name((*(self.search.own if self.search else ()), *self.tools))

    def _by_kind(
        self,
    ) -> tuple[tuple[Kind, Iterable[Contribution]], ...]:
        # The files of skills follow their skills.
        resources = tuple(item for item in self.resources if not item.skill)
        return (
            ("tools", self.tools),
            ("prompts", self.prompts),
            ("resources", resources),
            ("skills", self.skills),
        )


def visible(items: Iterable[_C]) -> list[_C]:
    """Return the items that are not hidden."""
    return [item for item in items if not item.hidden_reason]


def named(items: Iterable[_C], name: str) -> _C | None:
    """Return the item with this name, declared, portable or published, or None."""
    return _by_name(items).get(name)


def _by_name(items: Iterable[_C]) -> dict[str, _C]:
    """Return the item of each name; an item that owns its names wins over other items."""
    owners: dict[str, _C] = {}
    for item in sorted(items, key=lambda each: not each.owns_names):
        for name in item.names:
            owners.setdefault(name, item)
    return owners


def select(
    contributions: Contributions,
    settings: Settings,
    access: Access = EVERYTHING,
    open_ranking: OpenRanking = shared_words,
) -> Selection:
    """Apply the configuration and *access* to the contributions of plugins.

    Args:
        open_ranking: Ranks tools in searches of the caller.
    """
    problems: list[Problem] = []
    rules = _Rules(settings, access)
    extended = [_with_filters(item, contributions.filters, rules) for item in contributions.tools]
    tools = tuple(
        with_always_load(_with_arguments(item, override), settings)
        for item, override in _apply_overrides(extended, "tools", rules, problems)
    )
    names = {item.declared for item in visible(tools)}
    prompts = tuple(
        _hide_without_tools(item, item.prompt.needs, names)
        for item, _ in _apply_overrides(contributions.prompts, "prompts", rules, problems)
    )
    plain = [item for item in contributions.resources if not item.skill]
    resources = _hide_second_views(
        item for item, _ in _apply_overrides(plain, "resources", rules, problems)
    )
    views = {
        name: item.resource.uri for item in visible(resources) for name in item.resource.view_of
    }
    tools = tuple(replace(item, view=views.get(item.declared, "")) for item in tools)
    # Clients verify the text of a skill, so it cannot follow a tool to another name.
    names = {
        item.declared for item in visible(tools) if item.published in {item.declared, item.portable}
    }
    skills = tuple(
        _hide_without_tools(replace(item, hidden_reason=reason), item.needs, names)
        for item in contributions.skills
        for reason in (item.error or item.conflict or rules.hidden_reason(item, "skills"),)
    )
    resources += _skill_files(contributions.resources, skills, settings)
    routes = tuple(
        replace(
            item,
            limits=route_limits(item.route, settings.tools),
            hidden_reason=rules.route_hidden_reason(item),
        )
        for item in contributions.routes
    )
    search, is_structured = None, rules.tool_setting("structured") is not False
    if needs_search(visible(tools), settings, rules.tool_setting("discovery")):
        others = tuple(_without_name_of_search(item) for item in tools)
        if found := ToolSearch(
            visible(others), settings, open_ranking, is_structured=is_structured
        ):
            tools, search = others, found
    return Selection(
        tools,
        prompts,
        tuple(resources),
        skills,
        routes,
        tuple(problems),
        search,
        is_structured,
    )


class _Rules(NamedTuple):
    """The rules by which the configuration and the caller's access hide items."""

    settings: Settings
    access: Access

    @property
    def profiles(self) -> tuple[str, ...]:
        return (*self.settings.profiles_in_force, *self.access.profiles)

    def tool_setting(self, key: Literal["discovery", "structured"]) -> Any:
        """Return the value of the last profile that has this key, or the general one, or None."""
        tables = [self.settings.tools, *map(self.settings.profiles.get, self.profiles)]
        values = [getattr(table, key) for table in reversed(tables) if table]
        return next((value for value in values if value is not None), None)

    def plugin_hidden_reason(self, plugin: str) -> str:
        """Return why all contributions of a plugin are hidden, or an empty string."""
        settings = self.settings
        if settings.section(plugin).enabled is False:
            return f"[{settings.table(plugin)}] enabled = false"
        for name in self.profiles:
            if name not in settings.profiles:
                return f"there is no [profiles.{name}]"
            if not first_match((plugin,), settings.profiles[name].plugins):
                return f"[profiles.{name}] plugins has no pattern for {plugin!r}"
        return ""

    def route_hidden_reason(self, item: RegisteredRoute) -> str:
        """Return why a route or a page is hidden, or an empty string."""
        if item.route.is_page and not self.settings.server.pages:
            return "[server] pages = false"
        return self.plugin_hidden_reason(item.plugin)

    def hidden_reason(self, item: Contribution, kind: Kind) -> str:
        """Return why an item is hidden, or an empty string."""
        if reason := self.plugin_hidden_reason(item.plugin):
            return reason
        for path, rules in self.settings.rules(kind, self.profiles):
            table = ".".join(path)
            # Check all names: a rename must not bypass a rule for the old name.
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
    """Return a tool without the filters of plugins whose contributions are all hidden."""
    # A profile hides filters, because they are arguments that clients see. It disables no wrapper,
    # such as an audit: the user who starts a client chooses the profile, and must not bypass it.
    if not item.filters:
        return item
    hidden = {each.name for each in filters if rules.plugin_hidden_reason(each.plugin)}
    return item.with_filters_or_error(
        tuple(each for each in item.filters if each.name not in hidden)
    )


def _apply_overrides(
    items: Iterable[_Item], kind: Kind, rules: _Rules, problems: list[Problem]
) -> Iterator[tuple[_Item, Override]]:
    """Yield each item with its override applied; append wrong overrides to *problems*."""
    items = tuple(items)
    overrides: Mapping[str, Override] = getattr(rules.settings, kind).overrides
    owners = _by_name(items)
    for item in items:
        keys = [name for name in item.names if name in overrides]
        override = overrides[keys[0]] if keys else Override()
        problem = override_problem(item, (kind, "overrides", *keys), override, owners)
        if problem:
            message = f"{problem.message.rstrip('.')}; the {item.kind} is not served"
            problems.append(Problem(problem.path, message))
        changed = apply_override(item, override, rules.settings)
        # An item with an error or a name conflict is not served, whatever the rules say.
        reason = item.error or ("" if override.name else item.conflict)
        reason = reason or rules.hidden_reason(changed, kind)
        if problem and not reason:
            reason = f"{key_name(problem.path)}: {problem.message}"
        # Later items must not take this published name.
        owners.setdefault(changed.published, item)
        yield replace(changed, hidden_reason=reason), override


def _with_arguments(item: RegisteredTool, override: Override) -> RegisteredTool:
    """Return a tool with the overrides of its arguments, and with its warning."""
    # After the override: its description replaces the author's, and must not drop the warning.
    item = item.with_warning()
    # Not for a hidden tool: its arguments may not fit the override.
    if isinstance(override, ToolOverride) and override.arguments and not item.hidden_reason:
        return replace(item, arguments=overridden_arguments(item.arguments, override.arguments))
    return item


def _without_name_of_search(item: RegisteredTool) -> RegisteredTool:
    if item.hidden_reason or item.published not in (SEARCH_TOOLS, CALL_TOOL):
        return item
    reason = f"the search for tools needs the name {item.published!r}; set another in its override"
    return replace(item, hidden_reason=reason)


def _hide_without_tools(item: _C, needs: Iterable[str], tools: Collection[str]) -> _C:
    missing = next((name for name in needs if name not in tools), None)
    if item.hidden_reason or missing is None:
        return item
    return replace(item, hidden_reason=f"it needs the tool {missing!r}, which is not served")


def _hide_second_views(items: Iterable[RegisteredResource]) -> list[RegisteredResource]:
    """Hide each view of a tool that already has one; clients show only one."""
    owners, checked = dict[str, RegisteredResource](), list[RegisteredResource]()
    for item in items:
        names = () if item.hidden_reason else item.resource.view_of
        if taken := next((name for name in names if name in owners), ""):
            owner = owners[taken]
            reason = f"{owner.published!r} of plugin {owner.plugin!r} is the view of {taken!r}"
            checked.append(replace(item, hidden_reason=reason))
            continue
        owners |= dict.fromkeys(names, item)
        checked.append(item)
    return checked


def _skill_files(
    resources: Iterable[RegisteredResource], skills: Iterable[RegisteredSkill], settings: Settings
) -> Iterator[RegisteredResource]:
    """Yield the files of skills; they are served if their skill is."""
    reasons: dict[tuple[str, str], str] = {}
    for skill in skills:  # if a server lists one twice, the first counts, as for approvals
        reasons.setdefault((skill.plugin, skill.published), skill.hidden_reason)
    for item in resources:
        if item.skill:
            limits = item_limits(item, Override(), settings)
            reason = item.error or reasons[item.plugin, item.skill]
            yield replace(item, limits=limits, hidden_reason=reason)


def gained(contributions: Contributions, before: Settings, after: Settings) -> list[str]:
    """List the tools, prompts, resources and skills that a settings change would newly expose."""
    then, now = (select(contributions, each) for each in (before, after))
    # The files of a skill come with it.
    resources = ([item for item in each.resources if not item.skill] for each in (then, now))
    return [
        *_added(then.tools, now.tools),
        *(f"the prompt {name}" for name in _added(then.prompts, now.prompts)),
        *(f"the resource {name}" for name in _added(*resources)),
        *(f"the skill {name}" for name in _added(then.skills, now.skills)),
    ]


def _added(before: Iterable[Contribution], after: Iterable[Contribution]) -> list[str]:
    earlier = {(item.plugin, item.declared) for item in visible(before)}
    return [
        item.published for item in visible(after) if (item.plugin, item.declared) not in earlier
    ]


def joined_instructions(plugins: Mapping[str, str], selection: Selection) -> str:
    """Join the instructions of all plugins with visible contributions, each line once.

    Declared names of tools in braces become published names. A line with a hidden tool is left out.

    Args:
        plugins: The instructions of each plugin, by its name.
    """
    names = {item.declared: item.published for item in selection.visible_tools}
    texts = (text for plugin, text in plugins.items() if plugin in selection.serving)
    return " ".join(dict.fromkeys(_published_lines(texts, names)))


def _published_lines(texts: Iterable[str], names: Mapping[str, str]) -> Iterator[str]:
    for text in texts:
        for line in filter(None, map(str.strip, text.splitlines())):
            if names.keys() >= {*_TOOL_IN_BRACES.findall(line)}:
                yield _TOOL_IN_BRACES.sub(lambda match: names[match[1]], line)
