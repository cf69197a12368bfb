"""Apply an admin's overrides: names, texts and limits, and values of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from standards_mcp._utils.text import describe_exception, did_you_mean
from standards_mcp.config.models.settings import Settings
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
from .base import Contribution, Limits
from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .schemas import Schema, schema_validator
from .tools import RegisteredTool

_C = TypeVar("_C", bound=RegisteredTool | RegisteredPrompt | RegisteredResource)


def apply_override(item: _C, override: Override, settings: Settings) -> _C:
    """Return an item with the name, texts and limits of its override, but its own arguments."""
    as_declared = settings.tool_names == "declared"
    return replace(
        item,
        published=override.name or (item.declared if as_declared else item.portable),
        title=override.title or item.title,
        description=override.description or item.description,
        limits=item_limits(item, override, settings),
    )


def item_limits(
    item: RegisteredTool | RegisteredPrompt | RegisteredResource,
    override: Override,
    settings: Settings,
) -> Limits:
    """Return the limits of a tool, a prompt or a resource."""
    tools = settings.tools
    if not isinstance(item, RegisteredTool):
        table = settings.prompts if isinstance(item, RegisteredPrompt) else settings.resources
        return _limits(override, item, table, tools)
    tool, ttl = item.tool, override.cache_ttl if isinstance(override, ToolOverride) else None
    limits = _limits(override, tool, tools, tools, tool.max_output_tokens)
    cache_ttl = tool.cache_ttl if ttl is None else ttl
    return limits._replace(cache_ttl=cache_ttl, cache_scope=tool.cache_scope)


def route_limits(route: Route, tools: ToolSettings) -> Limits:
    """Return the limits of a route: the author's, and the general limits of tools."""
    return _limits(Override(), route, ContributionSettings(rate_limit=tools.rate_limit), tools)


def _limits(
    override: Override,
    author: Tool | Route | RegisteredPrompt | RegisteredResource,
    table: ToolSettings | ContributionSettings,
    tools: ToolSettings,
    author_tokens: int | None = None,
) -> Limits:
    """Return the limits of an item, from the admin's override, the author and the general *table*.

    An override replaces the other limits. The author's timeout replaces the general one. Both rates
    apply, and the smaller output length.
    """
    # Authors cannot widen the general rate and length, so that a new plugin cannot exceed them. An
    # override can: the admin has looked at that item.
    author_rate = author.rate_limit if isinstance(author, Tool | Route) else None
    rates = (override.rate_limit,) if override.rate_limit else (author_rate, table.rate_limit)
    lengths = [length for length in (author_tokens, table.max_output_tokens) if length]
    return Limits(
        timeout=override.timeout or author.timeout or tools.timeout,
        rate_limits=tuple(dict.fromkeys(filter(None, rates))),
        concurrency=override.concurrency,
        plugin_concurrency=tools.concurrency,
        max_output_tokens=override.max_output_tokens or min(lengths, default=None),
        max_argument_values=tools.max_argument_values,
    )


class OverriddenArguments(NamedTuple):
    """A tool's arguments with the admin's overrides.

    Attributes:
        inner: The author's arguments.
        schema: The schema that clients see, without the fixed arguments.
    """

    inner: Arguments
    schema: Schema
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function. See `Arguments.validate`."""
        # Not by the inner schema: it has the fixed arguments, which clients may not set.
        refuse_unknown(arguments, self.schema["properties"])
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self.inner.validate({**self.defaults, **given, **self.fixed})


def overridden_arguments(
    inner: Arguments, overrides: Mapping[str, ArgumentOverride]
) -> OverriddenArguments:
    """Return the arguments with *overrides* that `override_problem` has found valid."""
    fixed = {name: each.fixed for name, each in overrides.items() if each.fixed is not None}
    defaults = {name: each.default for name, each in overrides.items() if each.default is not None}
    properties: Schema = {}
    for name, schema in inner.schema.get("properties", {}).items():
        if name not in fixed:
            change = overrides.get(name) or ArgumentOverride()
            changes = {"description": change.description, "default": change.default}
            properties[name] = schema | {k: v for k, v in changes.items() if v is not None}
    schema = {**inner.schema, "properties": properties}
    if "required" in schema:
        optional = fixed.keys() | defaults.keys()
        schema["required"] = [name for name in schema["required"] if name not in optional]
    return OverriddenArguments(inner, schema, defaults, fixed)


def override_problem(
    item: Contribution,
    path: tuple[str, ...],
    override: Override,
    owners: Mapping[str, Contribution],
) -> Problem | None:
    """Return the first mistake in the override of an item, or None.

    Args:
        path: The kind, ``overrides``, and each name of the item that has an override.
        owners: The item that owns each name.
    """
    path, other_names = path[:3], path[3:]
    if other_names:
        return Problem(
            path, f"{other_names[0]!r} overrides the same {item.kind}; keep one of the two"
        )
    if override.name and owners.get(override.name, item) is not item:
        return Problem((*path, "name"), f"{override.name!r} belongs to another {item.kind}")
    if not (isinstance(item, RegisteredTool) and isinstance(override, ToolOverride)):
        return None
    if override.cache_ttl and not item.tool.read_only:
        return Problem((*path, "cache_ttl"), "it needs a read-only tool")
    return _argument_problem(item.arguments, override.arguments, (*path, "arguments"))


def _argument_problem(
    arguments: Arguments, overrides: Mapping[str, ArgumentOverride], table: tuple[str, ...]
) -> Problem | None:
    properties: Schema = arguments.schema.get("properties", {})
    for name, override in overrides.items():
        path = (*table, name)
        if name not in properties:
            hint = did_you_mean(name, properties) or f"; it has {', '.join(properties) or 'none'}"
            return Problem(path, f"the tool has no such argument{hint}")
        for key, value in _argument_values(override):
            misfits = schema_validator(properties[name]).iter_errors(value)
            reason = next((str(error.message) for error in misfits), "")
            if not reason and isinstance(arguments, ModelArguments):
                reason = arguments.mistake(name, value)
            if reason:
                return Problem((*path, key), reason)
    return None


def _argument_values(override: ArgumentOverride) -> Iterator[tuple[str, Any]]:
    for key, value in (("default", override.default), ("fixed", override.fixed)):
        if value is not None:
            yield key, value


async def value_problems(
    tools: Iterable[RegisteredTool], overrides: Mapping[str, ToolOverride]
) -> list[Problem]:
    """Return a problem for each override value that a filter or the tool's own check refuses.

    Such checks may read the catalog, so they are too slow to run at every start.
    """
    problems: list[Problem] = []
    for item in tools:
        filters = {each.name: each for each in item.filters or ()}
        for key in [name for name in item.names if name in overrides][:1]:
            for name, override in overrides[key].arguments.items():
                path = ("tools", "overrides", key, "arguments", name)
                for field, value in _argument_values(override):
                    if why := await _refusal(item.tool, filters.get(name), name, value):
                        problems.append(Problem((*path, field), why))
    return problems


async def _refusal(tool: Tool, item: Filter | None, name: str, value: Any) -> str:
    try:
        if item is not None:
            parsed = TypeAdapter[Any](item.annotation).validate_python(value)
            await filter_expression(item, parsed)
        if tool.check_argument is not None:
            await tool.check_argument(name, value)
    except ValidationError:
        return ""  # `override_problem` reports it
    except Exception as exc:  # noqa: BLE001  - a filter and a check are code of plugins
        return str(exc) if isinstance(exc, ToolError | ServiceError) else describe_exception(exc)
    return ""
