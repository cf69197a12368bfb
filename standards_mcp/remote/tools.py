"""Tools of other MCP servers, in the host's terms: their schemas and answers stay as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from standards_mcp._utils.text import readable
from standards_mcp.calls.context import CALL, HostContext
from standards_mcp.contributions.base import MAX_NAME, common_fields
from standards_mcp.contributions.coercion import admits_null, fitted
from standards_mcp.contributions.results import Result
from standards_mcp.contributions.schemas import (
    Schema,
    SchemaError,
    check_json_schema,
    plain_object,
    portable_input_schema,
    portable_output_schema,
    schema_errors,
    schema_validator,
)
from standards_mcp.contributions.tools import UNTRUSTED_TEXT_META, RegisteredTool
from standards_mcp.errors import InvalidInputError
from standards_mcp.plugin import Tool, ToolResult

from .definitions import declared_name, extra_of, meta_of, object_of, text_of

CallTool: TypeAlias = Callable[[str, Mapping[str, Any], HostContext], Awaitable[Mapping[str, Any]]]
"""Calls a tool by the name that its server gave it and returns the result as it came."""


_NO_ARGUMENTS: Final[Schema] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class GivenArguments:
    """Arguments of which the schema and what fits it go through as they are given."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, once they fit. See `Arguments.validate`."""
        given = self._without_nulls(arguments)
        if not self._validator.is_valid(given):
            given = self._without_nulls(fitted(arguments, self._inlined, booleans=True))
            if mistakes := schema_errors(self._validator, given):
                raise InvalidInputError(mistakes)
        return given

    def _without_nulls(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out each null for an optional argument that cannot be null."""
        properties, required = self._inlined.get("properties", {}), self.schema.get("required", ())
        return {
            name: value
            for name, value in arguments.items()
            if value is not None or name in required or admits_null(properties.get(name))
        }

    @cached_property
    def _inlined(self) -> Schema:
        return plain_object(self.schema)

    @cached_property
    def _validator(self) -> Any:
        return schema_validator(self.schema)


def read_remote_tool(
    server: str, raw: Mapping[str, Any], prefix: str, call: CallTool, timeout: float | None = None
) -> RegisteredTool:
    """Return a tool of another server; one that cannot be served says why as its ``error``.

    Args:
        raw: As the server lists it.
        prefix: What its declared name begins with.
        timeout: Seconds for one call, in place of ``tools.timeout``.
    """
    own = str(raw.get("name") or "")
    annotations = object_of(raw.get("annotations"))
    title = readable(text_of(raw.get("title")) or text_of(annotations.get("title")))
    description = readable(text_of(raw.get("description")) or title or own)

    async def function(**arguments: Any) -> ToolResult:
        caller: HostContext = arguments.pop(CALL)
        return tool_result(await call(own, arguments, caller))

    tool = Tool(
        name=declared_name(server, prefix, own),
        function=function,
        title=title or None,
        description=description,
        read_only=annotations.get("readOnlyHint") is True,
        destructive=annotations.get("destructiveHint") is not False,
        idempotent=annotations.get("idempotentHint") is True,
        open_world=annotations.get("openWorldHint") is not False,
        timeout=timeout,
        # Marked only: its description stays as the server wrote it and an admin approved it.
        meta={**object_of(raw.get("_meta")), UNTRUSTED_TEXT_META: True},
    )
    error = _error(raw, own, tool.name)
    schema = _NO_ARGUMENTS if error else dict(object_of(raw.get("inputSchema")))
    return RegisteredTool(
        **common_fields(server, tool, description),
        tool=tool,
        arguments=GivenArguments(schema),
        result=Result(None, _output_schema(raw.get("outputSchema")), wrapped=False),
        context=CALL,
        error=error,
        extra=extra_of(raw, "icons"),
    )


def tool_result(raw: Mapping[str, Any]) -> ToolResult:
    """Return a result as the other server gave it: content, structure, error flag and ``_meta``."""
    blocks = [object_of(block) for block in cast("list[Any]", raw.get("content") or [])]
    structured = raw.get("structuredContent")
    return ToolResult(
        text="\n".join(
            text_of(block.get("text")) for block in blocks if block.get("type") == "text"
        ),
        structured=cast("dict[str, Any]", structured) if isinstance(structured, dict) else None,
        is_error=raw.get("isError") is True,
        content=tuple(blocks),
        meta=meta_of(raw),
    )


def _error(raw: Mapping[str, Any], own: str, declared: str) -> str:
    """Return what keeps a tool from being served to every client, or an empty string."""
    if not own:
        return "its server lists it without a name"
    if len(declared) > MAX_NAME:
        return f"its name is longer than {MAX_NAME} characters; set a shorter prefix"
    schema = raw.get("inputSchema")
    try:
        portable_input_schema(object_of(schema))
        check_json_schema(object_of(schema))
    except (SchemaError, RecursionError) as exc:
        return str(exc)
    return ""


def _output_schema(schema: object) -> Schema | None:
    """Return the schema of an answer as given, or None for one that some clients refuse."""
    try:
        portable_output_schema(object_of(schema))
    except (SchemaError, RecursionError):
        return None
    return dict(object_of(schema))
