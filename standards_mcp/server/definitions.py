"""Convert contributions and results to MCP's form."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from standards_mcp.config.models.tools import Kind
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import Contents, RegisteredResource
from standards_mcp.contributions.results import error_result
from standards_mcp.contributions.selection import Selection, visible
from standards_mcp.contributions.tools import UNTRUSTED_TEXT_META, RegisteredTool
from standards_mcp.plugin import Message, ToolResult

log = logging.getLogger(__name__)

_Part: TypeAlias = types.TextResourceContents | types.BlobResourceContents
_PARTS: Final = TypeAdapter[list[_Part]](list[_Part])
_BLOCKS: Final = TypeAdapter(list[types.ContentBlock])

_T = TypeVar("_T")


def listed(selection: Selection) -> dict[Kind, list[Any]]:
    """Return the definitions of the visible contributions, by kind."""
    resources = [item for item in visible(selection.resources) if item.is_listed]
    return {
        "tools": [wire_tool(item) for item in selection.visible_tools],
        "prompts": [wire_prompt(item) for item in visible(selection.prompts)],
        "resources": [wire_resource(item) for item in resources],
    }


def _with_extra(kind: Callable[..., _T], item: Contribution, **fields: Any) -> _T:
    """Return a definition with the fields of another server, if MCP knows them."""
    try:
        return kind(**fields, **item.extra)
    except ValidationError:
        return kind(**fields)


def wire_tool(item: RegisteredTool) -> types.Tool:
    """Return the definition of a tool."""
    tool = item.tool
    marks = {UNTRUSTED_TEXT_META: True} if tool.returns_untrusted_text else {}
    return _with_extra(
        types.Tool,
        item,
        name=item.published,
        title=item.title,
        description=item.description,
        input_schema=item.arguments.schema,
        output_schema=item.result.schema,
        annotations=types.ToolAnnotations(
            title=item.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive and not tool.read_only,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
        _meta={"standards-mcp/plugin": item.plugin, **tool.meta, **marks},
    )


def wire_prompt(item: RegisteredPrompt) -> types.Prompt:
    """Return the definition of a prompt."""
    schema = item.arguments.schema
    required = schema.get("required", ())
    return _with_extra(
        types.Prompt,
        item,
        name=item.published,
        title=item.title,
        description=item.description or None,
        arguments=[
            types.PromptArgument(
                name=name,
                title=argument.get("title"),
                description=argument.get("description"),
                required=name in required,
            )
            for name, argument in schema["properties"].items()
        ],
        _meta={"standards-mcp/plugin": item.plugin, **item.meta},
    )


def wire_message(message: Message) -> types.PromptMessage:
    """Return a message of a prompt.

    Raises:
        pydantic.ValidationError: MCP has no such content.
    """
    text = {"type": "text", "text": message.text}
    content: Any = text if message.content is None else dict(message.content)
    return types.PromptMessage(role=message.role, content=content)


def wire_resource(item: RegisteredResource) -> types.Resource | types.ResourceTemplate:
    """Return the definition of a resource with a plain URI or a template."""
    uri = item.resource.uri
    fields: dict[str, Any] = {
        "name": item.published,
        "title": item.title,
        "description": item.description or None,
        "mime_type": item.resource.mime_type,
        "_meta": {"standards-mcp/plugin": item.plugin, **item.meta},
    }
    if item.template:
        return _with_extra(types.ResourceTemplate, item, uri_template=uri, **fields)
    return _with_extra(types.Resource, item, uri=uri, **fields)


def wire_contents(uri: str, contents: Contents) -> list[_Part]:
    """Return the contents of a resource.

    Raises:
        pydantic.ValidationError: MCP has no such contents.
    """
    if contents.parts is not None:
        return _PARTS.validate_python(contents.parts)
    data, mime_type = contents.data, contents.mime_type
    if isinstance(data, str):
        return [types.TextResourceContents(uri=uri, text=data, mime_type=mime_type)]
    blob = base64.b64encode(data).decode()
    return [types.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type)]


def wire_result(tool: str, result: ToolResult) -> dict[str, Any]:
    """Return the result of a tool as MCP's JSON; an error if it holds content unknown to MCP.

    A model of the SDK would copy and check the JSON again.
    """
    try:
        content = _content(result)
    except ValidationError as exc:
        fields = {"tool": tool, "reason": str(exc)}
        log.error("a result has content that MCP does not know", extra=fields)  # noqa: TRY400  - the reason says it all
        why = f"{tool} answered with content that clients cannot read. The server's log says why."
        result = error_result("internal_error", why)
        content = _content(result)
    # The JSON also stays in the text block, for older clients.
    answer: dict[str, Any] = {
        "resultType": "complete",
        "content": content,
        "isError": result.is_error,
    }
    if result.structured is not None:
        answer["structuredContent"] = result.structured
    return answer | {"_meta": dict(result.meta)} if result.meta else answer


def _content(result: ToolResult) -> list[dict[str, Any]]:
    notes = [{"type": "text", "text": note} for note in result.notes]
    if not result.content:
        return [{"type": "text", "text": result.text}, *notes]
    blocks = _BLOCKS.validate_python(result.content)
    return [*_BLOCKS.dump_python(blocks, mode="json", by_alias=True, exclude_none=True), *notes]
