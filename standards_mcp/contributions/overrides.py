"""The arguments of a tool as an admin changes them: fixed, with other defaults and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from standards_mcp._utils.text import did_you_mean
from standards_mcp.config.errors import Problem
from standards_mcp.config.models.tools import ArgumentOverride

from .arguments import Arguments, refuse_unknown
from .schemas import Schema


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

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function. See `Arguments.validate`."""
        refuse_unknown(arguments, self.schema["properties"])
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self.inner.validate({**self.defaults, **given, **self.fixed})


def argument_fault(
    arguments: Arguments, overrides: Mapping[str, ArgumentOverride], table: tuple[str, ...]
) -> Problem | None:
    """Return why overrides cannot be applied, with the key that is to blame; None if they can.

    Args:
        table: The keys of the table that they stand in.
    """
    properties: Schema = arguments.schema.get("properties", {})
    for name, override in overrides.items():
        path = (*table, name)
        if name not in properties:
            hint = did_you_mean(name, properties) or f"; it has {', '.join(properties) or 'none'}"
            return Problem(path, f"the tool has no such argument{hint}")
        for key, value in (("default", override.default), ("fixed", override.fixed)):
            if value is not None and (why := _misfit(value, properties[name])):
                return Problem((*path, key), why)
    return None


def overridden_arguments(
    inner: Arguments, overrides: Mapping[str, ArgumentOverride]
) -> OverriddenArguments:
    """Return the arguments with overrides that can be applied, see `argument_fault`."""
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
