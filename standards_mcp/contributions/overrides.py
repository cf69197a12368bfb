"""Apply an admin's changes: limits, and values and descriptions of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from standards_mcp._utils.text import describe_exception, did_you_mean
from standards_mcp.config.models.tools import (
    ArgumentOverride,
    ContributionSettings,
    Override,
    ToolOverride,
    ToolSettings,
)
from standards_mcp.config.problems import Problem
from standards_mcp.errors import ServiceError, ToolError
from standards_mcp.plugin import Filter, Route, Tool

from .arguments import Arguments, ModelArguments, filter_expression, refuse_unknown
from .base import Limits
from .schemas import Schema
from .tools import RegisteredTool


def tool_limits(tool: Tool, override: ToolOverride, tools: ToolSettings) -> Limits:
    """Return the limits of a tool: the admin's override, else its author's, else the general ones.

    Authors can make the general limits of rate and length stricter, but not wider.
    """
    # Otherwise a new plugin could widen the admin's limits. A limit that names the tool counts
    # alone, because the admin has looked at that tool.
    rates = (override.rate_limit,) if override.rate_limit else (tool.rate_limit, tools.rate_limit)
    most = min(tool.max_output_tokens or tools.max_output_tokens, tools.max_output_tokens)
    ttl = tool.cache_ttl if override.cache_ttl is None else override.cache_ttl
    return Limits(
        timeout=override.timeout or tool.timeout or tools.timeout,
        rate_limits=tuple(dict.fromkeys(filter(None, rates))),
        cache_ttl=ttl,
        cache_scope=tool.cache_scope,
        concurrency=override.concurrency,
        plugin_concurrency=tools.concurrency,
        max_output_tokens=override.max_output_tokens or most,
        max_argument_values=tools.max_argument_values,
    )


def route_limits(route: Route, tools: ToolSettings) -> Limits:
    """Return the limits of a route: its author's, and the general ones for tools."""
    return Limits(
        timeout=route.timeout or tools.timeout,
        rate_limits=tuple(dict.fromkeys(filter(None, (route.rate_limit, tools.rate_limit)))),
        plugin_concurrency=tools.concurrency,
    )


def content_limits(
    timeout: float | None, override: Override, table: ContributionSettings, tools: ToolSettings
) -> Limits:
    """Return the limits of a prompt or a resource: the admin's override, else those for its kind.

    Args:
        timeout: Its own, in seconds.
    """
    # Without a default: a resource may be a page or a data file that clients show in part or not at
    # all.
    rate = override.rate_limit or table.rate_limit
    return Limits(
        timeout=override.timeout or timeout or tools.timeout,
        rate_limits=(rate,) if rate else (),
        concurrency=override.concurrency,
        plugin_concurrency=tools.concurrency,
        max_output_tokens=override.max_output_tokens or table.max_output_tokens,
        max_argument_values=tools.max_argument_values,
    )


@dataclass(frozen=True, slots=True)
class OverriddenArguments:
    """A tool's arguments as the admin changed them.

    Attributes:
        schema: The schema that clients see, without the fixed arguments.
    """

    inner: Arguments
    schema: Schema
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function. See `Arguments.validate`."""
        # By the published schema: the inner one has the fixed arguments, which clients may not set.
        refuse_unknown(arguments, self.schema["properties"])
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self.inner.validate({**self.defaults, **given, **self.fixed})


def override_problem(
    arguments: Arguments, overrides: Mapping[str, ArgumentOverride], table: tuple[str, ...]
) -> Problem | None:
    """Return the first key of the overrides that is wrong, and the reason, or None.

    Args:
        table: The keys that lead to the table of the overrides.
    """
    properties: Schema = arguments.schema.get("properties", {})
    for name, override in overrides.items():
        path = (*table, name)
        if name not in properties:
            hint = did_you_mean(name, properties) or f"; it has {', '.join(properties) or 'none'}"
            return Problem(path, f"the tool has no such argument{hint}")
        for key, value in _values(override):
            if why := _misfit(value, properties[name]) or _refused(arguments, name, value):
                return Problem((*path, key), why)
    return None


async def value_problems(
    tools: Iterable[RegisteredTool], overrides: Mapping[str, ToolOverride]
) -> list[Problem]:
    """Return the values of overrides that a filter or the tool's own check refuses, and why.

    Such checks may read the catalog, so they are too slow for a start.
    """
    problems: list[Problem] = []
    for item in tools:
        keys = [name for name in item.names if name in overrides]
        changed = overrides[keys[0]].arguments if keys else {}
        for each in item.filters or ():
            for key, value in _values(changed.get(each.name) or ArgumentOverride()):
                if why := await _filter_refusal(each, value):
                    path = ("tools", "overrides", keys[0], "arguments", each.name, key)
                    problems.append(Problem(path, why))
        for name, override in changed.items():
            for key, value in _values(override):
                if why := await _tool_refusal(item.tool, name, value):
                    path = ("tools", "overrides", keys[0], "arguments", name, key)
                    problems.append(Problem(path, why))
    return problems


def _values(override: ArgumentOverride) -> Iterator[tuple[str, Any]]:
    for key, value in (("default", override.default), ("fixed", override.fixed)):
        if value is not None:
            yield key, value


def _refused(arguments: Arguments, name: str, value: Any) -> str:
    """Return why the tool's own validation refuses a value that fits the schema."""
    return arguments.mistake(name, value) if isinstance(arguments, ModelArguments) else ""


async def _tool_refusal(tool: Tool, name: str, value: Any) -> str:
    if tool.check_argument is None:
        return ""
    try:
        await tool.check_argument(name, value)
    except Exception as exc:  # noqa: BLE001  - the check is code of a plugin
        return str(exc) if isinstance(exc, ToolError | ServiceError) else describe_exception(exc)
    return ""


async def _filter_refusal(item: Filter, value: Any) -> str:
    try:
        await filter_expression(item, TypeAdapter[Any](item.annotation).validate_python(value))
    except ValidationError:
        return ""  # the selection reports it
    except Exception as exc:  # noqa: BLE001  - a filter is code of a plugin
        return str(exc) if isinstance(exc, ToolError | ServiceError) else describe_exception(exc)
    return ""


def overridden_arguments(
    inner: Arguments, overrides: Mapping[str, ArgumentOverride]
) -> OverriddenArguments:
    """Return the arguments with overrides that `override_problem` has accepted."""
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


def _misfit(value: Any, schema: Schema) -> str:
    import jsonschema  # noqa: PLC0415  - costs start-up time, and few configurations need it

    validator: Any = jsonschema.Draft202012Validator(schema)
    error = next(iter(validator.iter_errors(value)), None)
    return "" if error is None else str(error.message)
