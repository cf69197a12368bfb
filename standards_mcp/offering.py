"""From what plugins declare to what clients are offered: a pure function.

The configuration decides; plugins are not asked again, so it can be changed while they run. An
override that cannot be applied keeps what it is for from being served: one that hides an argument
must not be without effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

from .contributions import Contribution
from .declarations import Limits, RegisteredTool
from .errors import did_you_mean
from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .schemas import Schema
from .settings import Settings
from .signatures import Arguments, refuse_unknown
from .tool_settings import (
    ArgumentOverride,
    Choice,
    Override,
    Selection,
    ToolOverride,
    first_match,
)

Kind: TypeAlias = Literal["tools", "prompts", "resources"]
_C = TypeVar("_C", bound=Contribution)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A key of the configuration that names no tool that there is.

    Attributes:
        path: The keys that lead to it.
    """

    path: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Registered:
    """What the loaded plugins contribute."""

    tools: tuple[RegisteredTool, ...] = ()
    prompts: tuple[RegisteredPrompt, ...] = ()
    resources: tuple[RegisteredResource, ...] = ()

    def is_same(self, other: Registered) -> bool:
        """Tell whether the items are the very ones of *other*."""
        return all(
            list(map(id, mine)) == list(map(id, theirs))
            for mine, theirs in (
                (self.tools, other.tools),
                (self.prompts, other.prompts),
                (self.resources, other.resources),
            )
        )


@dataclass(frozen=True, slots=True)
class Offering:
    """What plugins contribute, as the configuration makes it, served or not."""

    tools: tuple[RegisteredTool, ...]
    prompts: tuple[RegisteredPrompt, ...]
    resources: tuple[RegisteredResource, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def served(self) -> list[RegisteredTool]:
        """The tools that clients see, in a stable order."""
        return served(self.tools)

    @property
    def definitions(self) -> dict[Kind, list[dict[str, Any]]]:
        """What clients see, by the kind of thing."""
        return {
            "tools": [item.definition for item in served(self.tools)],
            "prompts": [item.definition for item in served(self.prompts)],
            "resources": [item.definition for item in served(self.resources)],
        }

    def find(self, name: str) -> RegisteredTool | None:
        """Return the tool of any of its names."""
        return named(self.tools, name)

    def tool_names(self, declared: Iterable[str]) -> dict[str, str]:
        """Return the names that clients see of those of these tools that are served."""
        return {item.declared: item.published for item in self.served if item.declared in declared}


def served(items: Iterable[_C]) -> list[_C]:
    """Return what the configuration lets clients see."""
    return [item for item in items if not item.refusal]


def named(items: Iterable[_C], name: str) -> _C | None:
    """Return the item that has this among its names."""
    found = [item for item in items if name in item.names]
    return min(found, key=_clashes, default=None)


def offer(registered: Registered, settings: Settings) -> Offering:
    """Return what clients are offered of what is registered."""
    mismatches: list[Mismatch] = []
    chosen = _each(registered.tools, "tools", settings, mismatches)
    tools = [_as_tool(item, settings) for item in chosen]
    prompts = _each(registered.prompts, "prompts", settings, mismatches)
    resources = _each(registered.resources, "resources", settings, mismatches)
    names = {item.declared for item in served(tools)}
    return Offering(
        tuple(tools),
        tuple(_with_its_tools(item, names) for item in prompts),
        tuple(resources),
        tuple(mismatches),
    )


@dataclass(frozen=True, slots=True)
class OverriddenArguments:
    """A tool's arguments as the admin changed them.

    Attributes:
        schema: What clients see: without the fixed arguments.
    """

    inner: Arguments
    schema: Schema
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function. See `Arguments.validate`."""
        refuse_unknown(arguments, self.schema["properties"])
        given = {name: value for name, value in arguments.items() if value is not None}
        return self.inner.validate({**self.defaults, **given, **self.fixed})


def _each(
    registered: Iterable[_C], kind: Kind, settings: Settings, mismatches: list[Mismatch]
) -> list[_C]:
    """Return every item as the configuration makes it, and add what in it is without effect."""
    declared = tuple(registered)
    overrides: Mapping[str, Override] = getattr(settings, kind).overrides
    owners: dict[str, Contribution] = {}
    for item in sorted(declared, key=_clashes):
        for name in item.names:
            owners.setdefault(name, item)
    offered: list[_C] = []
    for item in declared:
        keys = [name for name in item.names if name in overrides]
        override = overrides[keys[0]] if keys else Override()
        if fault := _override_fault(item, keys, override, owners):
            mismatches.append(Mismatch((kind, "overrides", keys[0]), f"{fault}; it is not served"))
        changed = _overridden(item, override, settings)
        refusal = _fault(item, override) or _refusal(changed, kind, settings)
        if fault and not refusal:
            refusal = f'[{kind}.overrides."{keys[0]}"] {fault}'
        offered.append(replace(changed, refusal=refusal))
        owners.setdefault(changed.published, item)
    mismatches += _mismatches(offered, kind, settings)
    return offered


def _clashes(item: Contribution) -> bool:
    """Tell whether something bears a name that belongs to something else."""
    return isinstance(item, RegisteredTool) and bool(item.clash)


def _fault(item: Contribution, override: Override) -> str:
    """Return why something can be served under no rules, or an empty string."""
    if not isinstance(item, RegisteredTool):
        return ""
    return item.fault or ("" if override.name else item.clash)


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
    if override.arguments and not item.refusal:
        return replace(item, arguments=_overridden_arguments(item.arguments, override.arguments))
    return item


def _with_its_tools(item: RegisteredPrompt, tools: Collection[str]) -> RegisteredPrompt:
    missing = next((name for name in item.prompt.needs if name not in tools), None)
    if item.refusal or missing is None:
        return item
    return replace(item, refusal=f"it needs the tool {missing!r}, which is not served")


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


def _refusal(item: Contribution, kind: Kind, settings: Settings) -> str:
    """Return why the rules keep something from being served, or an empty string."""
    if settings.section(item.plugin).enabled is False:
        return f"[{settings.table(item.plugin)}] enabled = false"
    if settings.profile:
        patterns = settings.profiles[settings.profile].plugins
        if not first_match((item.plugin,), patterns):
            return f"[profiles.{settings.profile}] plugins has no pattern for {item.plugin!r}"
    for table, rules in _rules(kind, settings):
        # Under all of its names: a new one must not lead past a rule for an old one.
        if isinstance(rules, Selection) and isinstance(item, RegisteredTool):
            reason = rules.refusal(item.names, table, read_only=item.tool.read_only)
        else:
            reason = rules.refusal(item.names, table)
        if reason:
            return reason
    return ""


def _override_fault(
    item: Contribution,
    keys: Sequence[str],
    override: Override,
    owners: Mapping[str, Contribution],
) -> str:
    """Return why an override cannot be applied, or an empty string.

    Args:
        keys: The names under which the configuration overrides the item.
        owners: Whose each name is.
    """
    if len(keys) > 1:
        return f"{keys[1]!r} overrides the same {item.kind}; keep one of the two"
    if override.name and owners.get(override.name, item) is not item:
        return f"name = {override.name!r} belongs to another {item.kind}"
    if isinstance(item, RegisteredTool) and isinstance(override, ToolOverride):
        return _tool_fault(item, override)
    return ""


def _tool_fault(item: RegisteredTool, override: ToolOverride) -> str:
    if override.cache_ttl and not item.tool.read_only:
        return "cache_ttl needs a read-only tool"
    properties: Schema = item.arguments.schema.get("properties", {})
    for name, argument in override.arguments.items():
        if name not in properties:
            hint = did_you_mean(name, properties) or f"; it has {', '.join(properties) or 'none'}"
            return f"arguments: it has no argument {name!r}{hint}"
        for value in (argument.default, argument.fixed):
            if value is not None and (why := _misfit(value, properties[name])):
                return f"arguments.{name}: {why}"
    return ""


def _misfit(value: Any, schema: Schema) -> str:
    import jsonschema  # noqa: PLC0415  - costs start-up time, and few configurations need it

    validator: Any = jsonschema.Draft202012Validator(schema)
    error = next(iter(validator.iter_errors(value)), None)
    return "" if error is None else str(error.message)


def _overridden_arguments(
    inner: Arguments, overrides: Mapping[str, ArgumentOverride]
) -> OverriddenArguments:
    fixed = {name: each.fixed for name, each in overrides.items() if each.fixed is not None}
    defaults = {name: each.default for name, each in overrides.items() if each.default is not None}
    properties: Schema = {
        name: _overridden_property(schema, overrides.get(name) or ArgumentOverride())
        for name, schema in inner.schema.get("properties", {}).items()
        if name not in fixed
    }
    schema = {**inner.schema, "properties": properties}
    if "required" in schema:
        optional = fixed.keys() | defaults.keys()
        schema["required"] = [name for name in schema["required"] if name not in optional]
    return OverriddenArguments(inner, schema, defaults, fixed)


def _overridden_property(schema: Schema, override: ArgumentOverride) -> Schema:
    changes = {"description": override.description, "default": override.default}
    return schema | {name: value for name, value in changes.items() if value is not None}


def _mismatches(
    offered: Iterable[Contribution], kind: Kind, settings: Settings
) -> Iterator[Mismatch]:
    names = {name for item in offered for name in item.names}
    for table, rules in _rules(kind, settings):
        for key, patterns in (("enable", rules.enable), ("disable", rules.disable)):
            for pattern in patterns:
                if pattern != "*" and not first_match(names, (pattern,)):
                    yield Mismatch((*table.split("."), key), _no_match(pattern, kind, names))
    for name in getattr(settings, kind).overrides:
        if name not in names:
            yield Mismatch((kind, "overrides", name), _no_match(name, kind, names))


def _no_match(pattern: str, kind: Kind, names: Iterable[str]) -> str:
    hint = did_you_mean(pattern.strip("*?"), names)
    return f"{pattern!r} matches no {kind[:-1]}{hint or f'; see `standards-mcp {kind}`'}"


def _rules(kind: Kind, settings: Settings) -> list[tuple[str, Choice]]:
    """Return the rules in force for things of one kind, each with the name of its table."""
    rules: list[tuple[str, Choice]] = [(kind, getattr(settings, kind))]
    if settings.profile:
        table, profile = f"profiles.{settings.profile}", settings.profiles[settings.profile]
        if kind == "tools":
            rules.append((table, profile))
        else:
            rules.append((f"{table}.{kind}", getattr(profile, kind)))
    return rules
