"""Tools of other MCP servers, in the host's terms: their schemas and answers stay as they are."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from standards_mcp.calls.context import CALL, HostContext
from standards_mcp.contributions.arguments import check_json_schema, schema_mistakes
from standards_mcp.contributions.base import MAX_NAME, common_fields
from standards_mcp.contributions.results import Result
from standards_mcp.contributions.schemas import (
    Schema,
    SchemaError,
    portable_input_schema,
    portable_output_schema,
)
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import InvalidInputError
from standards_mcp.plugin import Tool, ToolResult

CallTool: TypeAlias = Callable[[str, Mapping[str, Any], HostContext], Awaitable[Mapping[str, Any]]]
"""Calls a tool by the name that its server gave it and returns the result as it came."""


_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]|\.(?=\.|$)")
_NO_ARGUMENTS: Final[Schema] = {"type": "object", "properties": {}}

# The protocol's own entries are about one connection, and so not for ours.
_RESERVED: Final = "io.modelcontextprotocol/"


@dataclass(frozen=True)
class GivenArguments:
    """Arguments of which the schema and the values go through as they are given."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, once they fit. See `Arguments.validate`."""
        if mistakes := schema_mistakes(self._validator, dict(arguments)):
            raise InvalidInputError(mistakes)
        return dict(arguments)

    @cached_property
    def _validator(self) -> Any:
        import referencing  # noqa: PLC0415  - costs start-up time
        from jsonschema.validators import (  # noqa: PLC0415  - as above
            Draft202012Validator,
            validator_for,
        )

        kind: Any = validator_for(self.schema, default=Draft202012Validator)
        library: Any = referencing
        # An empty registry: what a schema refers to is never fetched.
        return kind(self.schema, registry=library.Registry())


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
    annotations = _object(raw.get("annotations"))
    title = _text(raw.get("title")) or _text(annotations.get("title"))
    description = _text(raw.get("description")) or title or own

    async def function(**arguments: Any) -> ToolResult:
        caller: HostContext = arguments.pop(CALL)
        return tool_result(await call(own, arguments, caller))

    tool = Tool(
        name=_declared_name(server, prefix, own),
        function=function,
        title=title or None,
        description=description,
        read_only=annotations.get("readOnlyHint") is True,
        destructive=annotations.get("destructiveHint") is not False,
        idempotent=annotations.get("idempotentHint") is True,
        open_world=annotations.get("openWorldHint") is not False,
        timeout=timeout,
        meta=_object(raw.get("_meta")),
    )
    error = _error(raw, own, tool.name)
    schema = _NO_ARGUMENTS if error else dict(_object(raw.get("inputSchema")))
    return RegisteredTool(
        **common_fields(server, tool, description),
        tool=tool,
        arguments=GivenArguments(schema),
        result=Result(None, _output_schema(raw.get("outputSchema")), wrapped=False),
        context=CALL,
        error=error,
    )


def tool_result(raw: Mapping[str, Any]) -> ToolResult:
    """Return a result as the other server gave it: content, structure, error flag and ``_meta``."""
    blocks = [_object(block) for block in cast("list[Any]", raw.get("content") or [])]
    structured = raw.get("structuredContent")
    return ToolResult(
        text="\n".join(_text(block.get("text")) for block in blocks if block.get("type") == "text"),
        structured=cast("dict[str, Any]", structured) if isinstance(structured, dict) else None,
        is_error=raw.get("isError") is True,
        content=tuple(blocks),
        meta={
            key: value
            for key, value in _object(raw.get("_meta")).items()
            if not key.startswith(_RESERVED)
        },
    )


def _declared_name(server: str, prefix: str, own: str) -> str:
    name = _ODD.sub("_", prefix + own)
    return name if name[:1].isalpha() else f"{server}.{name}"


def _error(raw: Mapping[str, Any], own: str, declared: str) -> str:
    """Return what keeps a tool from being served to every client, or an empty string."""
    if not own:
        return "its server lists it without a name"
    if len(declared) > MAX_NAME:
        return f"its name is longer than {MAX_NAME} characters; set a shorter prefix"
    schema = raw.get("inputSchema")
    try:
        portable_input_schema(_object(schema))
        check_json_schema(_object(schema))
    except (SchemaError, RecursionError) as exc:
        return str(exc)
    return ""


def _output_schema(schema: object) -> Schema | None:
    """Return the schema of an answer as given, or None for one that some clients refuse."""
    try:
        portable_output_schema(_object(schema))
    except (SchemaError, RecursionError):
        return None
    return dict(_object(schema))


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
