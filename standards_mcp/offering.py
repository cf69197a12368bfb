"""From the tools that plugins declare to those that clients are offered: a pure function.

The configuration decides; plugins are not asked again, so it can be changed while they run. An
override that cannot be applied keeps its tool from being served: one that hides an argument must
not be without effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .declarations import Limits, RegisteredTool
from .errors import did_you_mean
from .schemas import Schema
from .settings import Settings
from .signatures import Arguments, refuse_unknown
from .tool_settings import ArgumentOverride, Profile, Selection, ToolOverride, first_match


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A key of the configuration that names no tool that there is.

    Attributes:
        path: The keys that lead to it.
    """

    path: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Offering:
    """The tools of all plugins as the configuration makes them, served or not."""

    tools: tuple[RegisteredTool, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def served(self) -> list[RegisteredTool]:
        """The tools that clients see, in a stable order."""
        return [item for item in self.tools if not item.refusal]

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """What models read of the tools that are served."""
        return [item.definition for item in self.served]

    def find(self, name: str) -> RegisteredTool | None:
        """Return the tool of any of its names."""
        found = [item for item in self.tools if name in item.names]
        return min(found, key=lambda item: bool(item.clash), default=None)


def offer(registered: Iterable[RegisteredTool], settings: Settings) -> Offering:
    """Return what clients are offered of the *registered* tools."""
    tools: list[RegisteredTool] = []
    mismatches: list[Mismatch] = []
    declared = tuple(registered)
    owners: dict[str, RegisteredTool] = {}
    for item in sorted(declared, key=lambda each: bool(each.clash)):
        for name in item.names:
            owners.setdefault(name, item)
    for item in declared:
        keys = [name for name in item.names if name in settings.tools.overrides]
        override = settings.tools.overrides[keys[0]] if keys else ToolOverride()
        if fault := _override_fault(item, keys, override, owners):
            where = ("tools", "overrides", keys[0])
            mismatches.append(Mismatch(where, f"{fault}; it is not served"))
        tools.append(_offered(item, override, settings, fault))
        owners.setdefault(tools[-1].published, item)
    mismatches += _mismatches(tools, settings)
    return Offering(tuple(tools), tuple(mismatches))


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


def _offered(
    item: RegisteredTool, override: ToolOverride, settings: Settings, fault: str
) -> RegisteredTool:
    as_declared = settings.tool_names == "declared"
    changed = replace(
        item,
        published=override.name or (item.tool.name if as_declared else item.portable),
        title=override.title or item.title,
        description=override.description or item.description,
        limits=_limits(item, override, settings),
    )
    refusal = item.fault or ("" if override.name else item.clash) or _refusal(changed, settings)
    if fault and not refusal:
        refusal = f'[tools.overrides."{item.tool.name}"] {fault}'
    if override.arguments and not refusal:
        changed = replace(changed, arguments=_overridden(item.arguments, override.arguments))
    return replace(changed, refusal=refusal)


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


def _refusal(item: RegisteredTool, settings: Settings) -> str:
    """Return why the rules keep a tool from being served, or an empty string."""
    if settings.section(item.plugin).enabled is False:
        return f"[{settings.table(item.plugin)}] enabled = false"
    for table, rules in _rules(settings):
        if isinstance(rules, Profile) and not first_match((item.plugin,), rules.plugins):
            return f"[{table}] plugins has no pattern for {item.plugin!r}"
        # Under all of its names: a new one must not lead past a rule for an old one.
        if reason := rules.refusal(item.names, read_only=item.tool.read_only, table=table):
            return reason
    return ""


def _override_fault(
    item: RegisteredTool,
    keys: Sequence[str],
    override: ToolOverride,
    owners: Mapping[str, RegisteredTool],
) -> str:
    """Return why an override cannot be applied, or an empty string.

    Args:
        keys: The names under which the configuration overrides the tool.
        owners: Whose each name is.
    """
    if len(keys) > 1:
        return f"{keys[1]!r} overrides the same tool; keep one of the two"
    if override.name and owners.get(override.name, item) is not item:
        return f"name = {override.name!r} belongs to another tool"
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


def _overridden(inner: Arguments, overrides: Mapping[str, ArgumentOverride]) -> OverriddenArguments:
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


def _mismatches(offered: Iterable[RegisteredTool], settings: Settings) -> Iterator[Mismatch]:
    names = {name for item in offered for name in item.names}
    for table, rules in _rules(settings):
        for key, patterns in (("enable", rules.enable), ("disable", rules.disable)):
            for pattern in patterns:
                if pattern != "*" and not first_match(names, (pattern,)):
                    yield Mismatch((*table.split("."), key), _no_match(pattern, names))
    for name in settings.tools.overrides:
        if name not in names:
            yield Mismatch(("tools", "overrides", name), _no_match(name, names))


def _no_match(pattern: str, names: Iterable[str]) -> str:
    hint = did_you_mean(pattern.strip("*?"), names)
    return f"{pattern!r} matches no tool{hint or '; see `standards-mcp tools`'}"


def _rules(settings: Settings) -> list[tuple[str, Selection]]:
    """Return the rules in force, each with the name of its table."""
    if not settings.profile:
        return [("tools", settings.tools)]
    table = f"profiles.{settings.profile}"
    return [("tools", settings.tools), (table, settings.profiles[settings.profile])]
