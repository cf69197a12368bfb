"""Applies an admin's changes to the arguments of a tool: fixed values, defaults, descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from standards_mcp._utils.text import describe_exception, did_you_mean
from standards_mcp.config.models.tools import ArgumentOverride, ToolOverride
from standards_mcp.config.problems import Problem
from standards_mcp.errors import ServiceError, ToolError
from standards_mcp.plugin import Filter, Tool

from .arguments.mistakes import refuse_unknown
from .arguments.schemas import Schema
from .arguments.signatures import Arguments, ModelArguments, filter_expression
from .tools import RegisteredTool


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
    """Return why overrides cannot be applied, and the key that is wrong; None if they can.

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

    They may look into the catalog for it, so it takes time, and is not done at a start.
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
        return ""  # the selection tells it
    except Exception as exc:  # noqa: BLE001  - a filter is code of a plugin
        return str(exc) if isinstance(exc, ToolError | ServiceError) else describe_exception(exc)
    return ""


def overridden_arguments(
    inner: Arguments, overrides: Mapping[str, ArgumentOverride]
) -> OverriddenArguments:
    """Return the arguments with overrides, in which `override_problem` has found nothing."""
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
