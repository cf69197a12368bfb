"""Answer MCP requests; convert contributions and results to the types of MCP."""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar, cast

import mcp_types as types
import pydantic_core
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

from standards_mcp._utils.secrets import mask, masked_data
from standards_mcp.calls.context import HostContext, InputRequiredError, Principal
from standards_mcp.config.models.tools import Kind
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import Contents, RegisteredResource
from standards_mcp.contributions.results import error_result
from standards_mcp.contributions.schemas import short
from standards_mcp.contributions.selection import Selection, visible
from standards_mcp.contributions.tools import UNTRUSTED_TEXT_META, RegisteredTool
from standards_mcp.errors import (
    ABILITIES,
    CannotAskError,
    InvalidInputError,
    NotFoundError,
    NotServedError,
    ToolError,
    UnknownToolError,
)
from standards_mcp.host import Host
from standards_mcp.plugin import Message, ToolResult
from standards_mcp.remote.definitions import RefusedError, object_of

from .context import ClientContext, Context, session_of

# Several clients drop all pages but the first.
MAX_PAGE_BYTES: Final = 1 << 20
"""A list of up to this many bytes has one page."""
_CACHE_MILLISECONDS: Final = 300_000

_MAX_CURSOR_CHARS: Final = 9

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_Definition = TypeVar("_Definition", bound=BaseModel | Mapping[str, Any])
_Part: TypeAlias = types.TextResourceContents | types.BlobResourceContents
_PARTS: Final = TypeAdapter[list[_Part]](list[_Part])
_BLOCKS: Final = TypeAdapter(list[types.ContentBlock])


def handlers(
    host: Host, principal_of: Callable[[Context], Principal]
) -> dict[str, Callable[..., Awaitable[Any]]]:
    """Return the request handlers of *host*, as arguments of the SDK's low-level server."""
    answers = _Handlers(host, principal_of)
    paged, templates = answers.paged, partial(_wire_resources, templates=True)
    return {
        "on_list_tools": paged(types.ListToolsResult, "tools", _wire_tools),
        "on_list_prompts": paged(types.ListPromptsResult, "prompts", _wire_prompts),
        "on_list_resources": paged(types.ListResourcesResult, "resources", _wire_resources),
        "on_list_resource_templates": paged(
            types.ListResourceTemplatesResult, "resource_templates", templates
        ),
        "on_call_tool": answers.call_tool,
        "on_get_prompt": answers.get_prompt,
        "on_read_resource": answers.read_resource,
        "on_completion": answers.complete,
    }


class Answering:
    """Answers requests by the current rights of their callers."""

    def __init__(self, host: Host, principal_of: Callable[[Context], Principal]) -> None:
        self._host = host
        self._principal_of = principal_of

    async def _visible(self, ctx: Context) -> Selection:
        await self._host.manager.wait_listed()
        return self._host.visible(self._principal_of(ctx))


class _Handlers(Answering):
    def _context(self, ctx: Context) -> HostContext:
        return HostContext(self._principal_of(ctx), session_of(ctx))

    def paged(
        self,
        result: Callable[..., _T],
        key: str,
        definitions: Callable[[Selection], Iterable[BaseModel]],
    ) -> Callable[[Context, types.PaginatedRequestParams | None], Awaitable[_T]]:
        """Return the handler that answers with a page of *definitions*."""

        async def answer(ctx: Context, params: types.PaginatedRequestParams | None) -> _T:
            page, cursor = page_of(definitions(await self._visible(ctx)), params)
            return result(**{key: page, "next_cursor": cursor}, **cache_hints(self._host))

        return answer

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> dict[str, Any] | types.InputRequiredResult:
        principal = self._principal_of(ctx)
        context = ClientContext(ctx, params, principal)
        try:
            async with aclosing(context):
                result = await self._host.call_tool(params.name, params.arguments or {}, context)
        except UnknownToolError as exc:
            raise MCPError(types.INVALID_PARAMS, str(exc)) from None
        except InputRequiredError as exc:
            return cast("types.InputRequiredResult", exc.request)
        _check_capabilities(ctx, result)
        answer = wire_result(params.name, result)
        if not self._host.visible(principal).is_structured:
            answer.pop("structuredContent", None)
        return answer

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        await self._host.manager.wait_listed()
        context = ClientContext(ctx, params, self._principal_of(ctx))
        try:
            with as_protocol_errors(self._host):
                async with aclosing(context):
                    answer = await self._host.content.get_prompt(
                        params.name, params.arguments or {}, context
                    )
                return types.GetPromptResult(
                    description=answer.description,
                    messages=[wire_message(item) for item in answer.messages],
                    _meta=dict(answer.meta) or None,
                )
        except InputRequiredError as exc:
            return cast("types.InputRequiredResult", exc.request)

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        await self._host.manager.wait_listed()
        with as_protocol_errors(self._host, {"uri": params.uri}):
            contents = await self._host.content.read_resource(params.uri, self._context(ctx))
            return types.ReadResourceResult(
                contents=wire_contents(params.uri, contents),
                _meta=dict(contents.meta) or None,
                **(cache_hints(self._host) if contents.fixed else {}),
            )

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        await self._host.manager.wait_listed()
        ref, argument = params.ref, params.argument
        other_arguments = (params.context.arguments if params.context else None) or {}
        context = self._context(ctx)
        content = self._host.content
        with as_protocol_errors(self._host):
            item: RegisteredPrompt | RegisteredResource
            if isinstance(ref, types.PromptReference):
                item = content.prompt(ref.name, context)
            else:
                item = content.resource(ref.uri, context)
            completion = await content.complete(
                item, argument.name, argument.value, other_arguments, context
            )
        return types.CompleteResult(
            completion=types.Completion(
                values=completion.values, total=completion.total, has_more=completion.has_more
            )
        )


@contextmanager
def as_protocol_errors(host: Host, data: Mapping[str, str] | None = None) -> Generator[None]:
    """Raise refusals and failures as protocol errors, for requests other than tool calls.

    An error of another MCP server keeps its code, text and data, with the host's secrets masked.
    """
    try:
        yield
    except RefusedError as exc:
        secrets = host.secrets()
        own = data if exc.error_data is None else masked_data(exc.error_data, secrets)
        raise MCPError(exc.code, mask(exc.reason, secrets), own) from None
    except CannotAskError as exc:
        raise _missing_capability(str(exc), exc.ability) from None
    except (NotServedError, InvalidInputError, NotFoundError) as exc:
        raise MCPError(types.INVALID_PARAMS, str(exc), data) from None
    except ToolError as exc:
        raise MCPError(types.INTERNAL_ERROR, str(exc), data) from None
    except ValidationError as exc:
        log.error("an answer has content that MCP does not know", extra={"reason": str(exc)})  # noqa: TRY400  - the reason says it all
        message = "the answer holds content that clients cannot read. The server's log says why."
        raise MCPError(types.INTERNAL_ERROR, message, data) from None


def _check_capabilities(ctx: Context, result: ToolResult) -> None:
    """Raise the protocol error of 2026-07-28 if the client lacks a capability that the tool needs.

    Clients of earlier versions get the tool's error result, which has the same message.
    """
    envelope = result.structured or {}
    if not result.is_error or envelope.get("error_type") != CannotAskError.error_type:
        return
    missing = object_of(envelope.get("details")).get("missing_capability")
    if missing in ABILITIES and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        raise _missing_capability(str(envelope.get("message")), missing)


def _missing_capability(message: str, ability: str) -> MCPError:
    data: dict[str, dict[str, dict[str, Any]]] = {"requiredCapabilities": {ability: {}}}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


def cache_hints(host: Host) -> dict[str, Any]:
    """Return the hints for caches with a list, or with contents that are fixed.

    Their changes are announced to clients. A cache may share them with all callers only if no token
    changes what is served.
    """
    auth = host.settings.server.auth
    is_public = not (auth.is_required or auth.tokens or auth.jwt or auth.oidc)
    return {
        "ttlMs": _CACHE_MILLISECONDS if host.all_known else 0,
        "cacheScope": "public" if is_public else "private",
    }


def definition_bytes(definition: BaseModel | Mapping[str, Any]) -> int:
    """Return the size of a definition in a list."""
    return len(pydantic_core.to_json(definition, by_alias=True, exclude_none=True))


def page_of(
    items: Iterable[_Definition], params: types.PaginatedRequestParams | None
) -> tuple[list[_Definition], str | None]:
    """Return the items of the requested page, and the cursor of the next one."""
    cursor = (params.cursor if params else None) or "0"
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > _MAX_CURSOR_CHARS:
        message = f"cursor {short(cursor)!r} is not valid; leave it out for the first page"
        raise MCPError(types.INVALID_PARAMS, message)
    page, size, start = list[_Definition](), 0, int(cursor)
    for number, item in enumerate(islice(items, start, None), start):
        size += definition_bytes(item)
        if page and size > MAX_PAGE_BYTES:
            return page, str(number)
        page.append(item)
    return page, None


def definitions_by_kind(selection: Selection) -> dict[Kind, list[Any]]:
    """Return what is visible to clients, by kind; entries of skills count as resources."""
    templates = _wire_resources(selection, templates=True)
    entries = [item.entry for item in visible(selection.skills)]
    return {
        "tools": list(_wire_tools(selection)),
        "prompts": _wire_prompts(selection),
        "resources": [*_wire_resources(selection), *templates, *entries],
    }


def _with_extra(model: Callable[..., _T], item: Contribution, **fields: Any) -> _T:
    """Return a definition with the further fields from another server, if MCP defines them."""
    try:
        return model(**fields, **item.extra)
    except ValidationError:
        return model(**fields)


def _wire_tools(selection: Selection) -> Iterator[types.Tool]:
    """Yield the definitions of the tools in the list for clients."""
    for tool in map(wire_tool, selection.listed_tools):
        if not selection.is_structured:
            tool.output_schema = None
        yield tool


def _wire_prompts(selection: Selection) -> list[types.Prompt]:
    return [wire_prompt(item) for item in visible(selection.prompts)]


def _wire_resources(
    selection: Selection, *, templates: bool = False
) -> list[types.Resource | types.ResourceTemplate]:
    """Return the definitions of the listed resources with plain URIs, or with templates."""
    items = (item for item in visible(selection.resources) if item.is_listed)
    return [wire_resource(item) for item in items if bool(item.template) is templates]


def wire_tool(item: RegisteredTool) -> types.Tool:
    """Return the definition of a tool."""
    tool = item.tool
    untrusted = {UNTRUSTED_TEXT_META: True} if tool.returns_untrusted_text else {}
    ui = dict(object_of(tool.meta.get("ui")))
    if item.view:
        ui["resourceUri"] = item.view
    if tool.views_only:
        ui["visibility"] = ["app"]
    return _with_extra(
        types.Tool,
        item,
        name=item.published,
        title=item.title,
        description=item.description,
        input_schema=item.arguments.schema,
        output_schema=item.result.schema,
        annotations=types.ToolAnnotations.model_validate(item.annotations),
        _meta={"standards-mcp/plugin": item.plugin, **tool.meta, **untrusted}
        | ({"ui": ui} if ui else {}),
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
        pydantic.ValidationError: The content is not valid in MCP.
    """
    text = {"type": "text", "text": message.text}
    content: Any = text if message.content is None else dict(message.content)
    return types.PromptMessage(role=message.role, content=content)


def wire_resource(item: RegisteredResource) -> types.Resource | types.ResourceTemplate:
    """Return the definition of a resource with a plain URI or a template."""
    uri = item.resource.uri
    meta = {"standards-mcp/plugin": item.plugin, **item.resource.meta}
    fields: dict[str, Any] = {
        "name": item.resource.name if item.skill else item.published,
        "title": item.title,
        "description": item.description or None,
        "mime_type": item.resource.mime_type,
        # Keys of a skill's files should have the prefix of the extension.
        "_meta": None if item.skill else meta,
    }
    if item.template:
        return _with_extra(types.ResourceTemplate, item, uri_template=uri, **fields)
    return _with_extra(types.Resource, item, uri=uri, **fields)


def wire_contents(uri: str, contents: Contents) -> list[_Part]:
    """Return the contents of a resource.

    Raises:
        pydantic.ValidationError: The contents are not valid in MCP.
    """
    if contents.parts is not None:
        return _PARTS.validate_python(contents.parts)
    data, mime_type, meta = contents.data, contents.mime_type, dict(contents.item_meta) or None
    if isinstance(data, str):
        return [types.TextResourceContents(uri=uri, text=data, mime_type=mime_type, _meta=meta)]
    blob = base64.b64encode(data).decode()
    return [types.BlobResourceContents(uri=uri, blob=blob, mime_type=mime_type, _meta=meta)]


def wire_result(tool: str, result: ToolResult) -> dict[str, Any]:
    """Return the result of a tool as MCP's JSON, or an error if its content is not valid in MCP.

    The result is no model of the SDK, which would copy and validate the JSON again.
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
