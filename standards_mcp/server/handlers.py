"""What the server answers to each request: the host's contributions as MCP spells them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from standards_mcp.calls.context import InputRequiredError, Principal, Unattended
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import Contents, RegisteredResource
from standards_mcp.contributions.results import error_result
from standards_mcp.contributions.selection import Selection, visible
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import (
    InvalidInputError,
    NotFoundError,
    NotServedError,
    ToolError,
    UnknownToolError,
)
from standards_mcp.host import Host
from standards_mcp.plugin import Message, ToolResult

from .context import ClientContext, Context

PAGE_SIZE: Final = 250
"""How many items a page of a list has; the protocol leaves it to the server."""
_MOST_COMPLETIONS: Final = 100
_BLOCKS: Final = TypeAdapter(list[types.ContentBlock])


log = logging.getLogger(__name__)


_T = TypeVar("_T")


def handlers(
    host: Host, principal_of: Callable[[Context], Principal]
) -> dict[str, Callable[..., Awaitable[Any]]]:
    """Return the handlers of *host* by the names that the SDK's low-level server has for them."""
    answers = _Answers(host, principal_of)
    return {
        "on_list_tools": answers.list_tools,
        "on_call_tool": answers.call_tool,
        "on_list_prompts": answers.list_prompts,
        "on_get_prompt": answers.get_prompt,
        "on_list_resources": answers.list_resources,
        "on_list_resource_templates": answers.list_templates,
        "on_read_resource": answers.read_resource,
        "on_completion": answers.complete,
    }


class _Answers:
    def __init__(self, host: Host, principal_of: Callable[[Context], Principal]) -> None:
        self._host = host
        self._principal_of = principal_of

    async def _visible(self, ctx: Context) -> Selection:
        await self._host.manager.wait_listed()
        return self._host.visible(self._principal_of(ctx))

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        items, cursor = _page((await self._visible(ctx)).visible_tools, params)
        return types.ListToolsResult(tools=[_wire_tool(item) for item in items], next_cursor=cursor)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        context = ClientContext(ctx, params, self._principal_of(ctx))
        try:
            result = await self._host.call_tool(params.name, params.arguments or {}, context)
        except UnknownToolError as exc:
            raise MCPError(types.INVALID_PARAMS, str(exc)) from None
        except InputRequiredError as exc:
            return cast("types.InputRequiredResult", exc.request)
        result, content = _with_content(params.name, result)
        return types.CallToolResult(
            content=content,
            structured_content=result.structured,
            is_error=result.is_error,
            _meta=dict(result.meta) or None,
        )

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        items, cursor = _page(visible((await self._visible(ctx)).prompts), params)
        prompts = [_wire_prompt(item) for item in items]
        return types.ListPromptsResult(prompts=prompts, next_cursor=cursor)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        await self._host.manager.wait_listed()
        with _as_protocol_errors():
            messages = await self._host.content.get_prompt(
                params.name, params.arguments or {}, context=Unattended(self._principal_of(ctx))
            )
        return types.GetPromptResult(messages=[_wire_message(item) for item in messages])

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        plain = [
            item for item in visible((await self._visible(ctx)).resources) if item.template is None
        ]
        items, cursor = _page(plain, params)
        resources = [types.Resource(uri=item.resource.uri, **_resource(item)) for item in items]
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [
            item for item in visible((await self._visible(ctx)).resources) if item.template
        ]
        items, cursor = _page(templates, params)
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=item.resource.uri, **_resource(item))
                for item in items
            ],
            next_cursor=cursor,
        )

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        await self._host.manager.wait_listed()
        with _as_protocol_errors({"uri": params.uri}):
            contents = await self._host.content.read_resource(
                params.uri, Unattended(self._principal_of(ctx))
            )
        return types.ReadResourceResult(contents=[_wire_contents(params.uri, contents)])

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        await self._host.manager.wait_listed()
        ref, argument = params.ref, params.argument
        others = (params.context.arguments if params.context else None) or {}
        context = Unattended(self._principal_of(ctx))
        content = self._host.content
        with _as_protocol_errors():
            item: RegisteredPrompt | RegisteredResource
            if isinstance(ref, types.PromptReference):
                item = content.prompt(ref.name, context)
            else:
                item = content.resource(ref.uri, context)
            values = await content.complete(item, argument.name, argument.value, others, context)
        shown = values[:_MOST_COMPLETIONS]
        return types.CompleteResult(
            completion=types.Completion(
                values=shown, total=len(values), has_more=len(values) > len(shown)
            )
        )


@contextmanager
def _as_protocol_errors(data: Mapping[str, str] | None = None) -> Generator[None]:
    """Answer a refusal or a failure as the protocol does where there is no tool error."""
    try:
        yield
    except (NotServedError, InvalidInputError, NotFoundError) as exc:
        raise MCPError(types.INVALID_PARAMS, str(exc), data) from None
    except ToolError as exc:
        raise MCPError(types.INTERNAL_ERROR, str(exc), data) from None


def _page(
    items: Sequence[_T], params: types.PaginatedRequestParams | None
) -> tuple[Sequence[_T], str | None]:
    """Return the items of the page that was asked for, and the cursor of the next one."""
    cursor = (params.cursor if params else None) or "0"
    if not cursor.isascii() or not cursor.isdigit():
        message = f"cursor {cursor!r} is none of this server's; leave it out for the first page"
        raise MCPError(types.INVALID_PARAMS, message)
    start = int(cursor)
    end = start + PAGE_SIZE
    return items[start:end], str(end) if end < len(items) else None


def _wire_tool(item: RegisteredTool) -> types.Tool:
    tool = item.tool
    return types.Tool(
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
        _meta={"standards-mcp/plugin": item.plugin, **tool.meta},
    )


def _with_content(tool: str, result: ToolResult) -> tuple[ToolResult, list[types.ContentBlock]]:
    """Return a result and what the client gets of it; an error where MCP has no such content."""
    try:
        return result, _wire_content(result)
    except ValidationError as exc:
        fields = {"tool": tool, "reason": str(exc)}
        log.error("a result has content that MCP does not know", extra=fields)  # noqa: TRY400  - the reason says it all
    refused = error_result(
        "internal_error",
        f"{tool} answered with content that clients cannot read. The server's log says why.",
    )
    return refused, _wire_content(refused)


def _wire_content(result: ToolResult) -> list[types.ContentBlock]:
    notes = [_text(note) for note in result.notes]
    if result.content:
        return [*_BLOCKS.validate_python(result.content), *notes]
    return [_text(result.text), *notes]


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _wire_prompt(item: RegisteredPrompt) -> types.Prompt:
    schema = item.arguments.schema
    required = schema.get("required", ())
    return types.Prompt(
        name=item.published,
        title=item.title,
        description=item.description,
        arguments=[
            types.PromptArgument(
                name=name, description=argument.get("description"), required=name in required
            )
            for name, argument in schema["properties"].items()
        ],
        _meta={"standards-mcp/plugin": item.plugin},
    )


def _wire_message(message: Message) -> types.PromptMessage:
    return types.PromptMessage(role=message.role, content=_text(message.text))


def _resource(item: RegisteredResource) -> dict[str, Any]:
    return {
        "name": item.published,
        "title": item.title,
        "description": item.description,
        "mime_type": item.resource.mime_type,
        "_meta": {"standards-mcp/plugin": item.plugin},
    }


def _wire_contents(
    uri: str, contents: Contents
) -> types.TextResourceContents | types.BlobResourceContents:
    data, mime_type = contents.data, contents.mime_type
    if isinstance(data, str):
        return types.TextResourceContents(uri=uri, text=data, mime_type=mime_type)
    blob = base64.b64encode(data).decode()
    return types.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type)
