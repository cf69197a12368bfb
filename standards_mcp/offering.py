"""From the tools that plugins declare to those that clients are offered: a pure function.

The configuration decides; plugins are not asked again, so it can be changed while they run. An
override that cannot be applied keeps its tool from being served: one that hides an argument must
not be without effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .declarations import Limits, RegisteredTool
from .errors import did_you_mean
from .mismatches import Mismatch
from .schemas import Schema
from .setting_layers import key_name
from .settings import Settings
from .signatures import Arguments, refuse_unknown
from .tool_settings import ArgumentOverride, Profile, Selection, ToolOverride, first_match


@dataclass(frozen=True, slots=True)
class Offering:
    """The tools of all plugins as the configuration makes them, served or not.

    Attributes:
        faults: The overrides that cannot be applied.
    """

    tools: tuple[RegisteredTool, ...]
    faults: tuple[Mismatch, ...]

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
        return next((item for item in self.tools if name in item.names), None)


def offer(registered: Iterable[RegisteredTool], settings: Settings) -> Offering:
    """Return what clients are offered of the *registered* tools."""
    tools: list[RegisteredTool] = []
    faults: list[Mismatch] = []
    declared = tuple(registered)
    owners = {name: item for item in declared for name in item.names}
    for item in declared:
        keys = [name for name in item.names if name in settings.tools.overrides]
        override = settings.tools.overrides[keys[0]] if keys else ToolOverride()
        fault = _override_fault(item, keys, override, owners)
        if fault:
            faults.append(Mismatch(fault.path, f"{fault.message}; the tool is not served"))
        tools.append(_offered(item, override, settings, fault))
        owners.setdefault(tools[-1].published, item)
    return Offering(tuple(tools), tuple(faults))


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
    item: RegisteredTool, override: ToolOverride, settings: Settings, fault: Mismatch | None
) -> RegisteredTool:
    as_declared = settings.tool_names == "declared"
    changed = replace(
        item,
        published=override.name or (item.tool.name if as_declared else item.portable),
        title=override.title or item.title,
        description=override.description or item.description,
        limits=_limits(item, override, settings),
    )
    refusal = _refusal(changed, settings)
    if fault and not refusal:
        refusal = f"{key_name(fault.path)}: {fault.message}"
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
        return f"[plugins.{item.plugin}] enabled = false"
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
) -> Mismatch | None:
    """Return why an override cannot be applied, with the key that is to blame.

    Args:
        keys: The names under which the configuration overrides the tool.
        owners: Whose each name is.
    """
    table = ("tools", "overrides", *keys[:1])
    if len(keys) > 1:
        return Mismatch(table, f"{keys[1]!r} overrides the same tool; keep one of the two")
    if override.name and owners.get(override.name, item) is not item:
        return Mismatch((*table, "name"), f"{override.name!r} belongs to another tool")
    return _tool_fault(item, override, table)


def _tool_fault(
    item: RegisteredTool, override: ToolOverride, table: tuple[str, ...]
) -> Mismatch | None:
    if override.cache_ttl and not item.tool.read_only:
        return Mismatch((*table, "cache_ttl"), "it needs a read-only tool")
    properties: Schema = item.arguments.schema["properties"]
    for name, argument in override.arguments.items():
        path = (*table, "arguments", name)
        if name not in properties:
            hint = did_you_mean(name, properties) or f"; it has {', '.join(properties) or 'none'}"
            return Mismatch(path, f"the tool has no such argument{hint}")
        for key, value in (("default", argument.default), ("fixed", argument.fixed)):
            if value is not None and (why := _misfit(value, properties[name])):
                return Mismatch((*path, key), why)
    return None


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
        for name, schema in inner.schema["properties"].items()
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


def _rules(settings: Settings) -> list[tuple[str, Selection]]:
    """Return the rules in force, each with the name of its table."""
    if not settings.profile:
        return [("tools", settings.tools)]
    table = f"profiles.{settings.profile}"
    return [("tools", settings.tools), (table, settings.profiles[settings.profile])]
