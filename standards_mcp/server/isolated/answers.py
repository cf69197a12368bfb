"""What the process of an isolated plugin answers to the host outside, beside MCP's own requests."""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

import pydantic_core
from pydantic import BaseModel

from standards_mcp._utils.secrets import declares_secret, long_texts, mask, masked_data
from standards_mcp.calls.context import LOCAL, InputRequiredError
from standards_mcp.calls.records import CallRecord
from standards_mcp.calls.steps.errors import translated
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.variables import plugin_variables
from standards_mcp.contributions.base import Completion, Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.errors import ServiceError, ToolError
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginRecord, Status
from standards_mcp.plugin import Health, Message, PluginSettings, Prompt, Resource, Tool
from standards_mcp.remote.errors import ERROR_TYPE
from standards_mcp.remote.isolated import protocol as wire

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult

    from standards_mcp.server.context import Context

log = logging.getLogger(__name__)

_C = TypeVar("_C", bound=Contribution)

_TOLD_APART: Final = frozenset(
    ("name", "title", "description", "function", "complete", "input_schema", "output_schema")
)


class LogFields:
    """Sends what a call adds to its log line along with its result: the host outside logs it."""

    def __init__(self) -> None:
        self._of_call = ContextVar[dict[str, object]]("log_fields")

    def call_started(self, record: CallRecord) -> None:
        """Do nothing. See `Observer`."""

    def call_ended(self, record: CallRecord) -> None:
        """Keep the fields for `add`, which awaits the call in the same context."""
        self._of_call.get({}).update(record.fields)

    async def add(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a request; the ``_meta`` of a tool's result has the fields."""
        fields: dict[str, object] = {}
        self._of_call.set(fields)
        result: Any = await call_next(ctx)
        if fields and ctx.method == "tools/call":
            told = pydantic_core.to_jsonable_python(fields, fallback=str)
            return {**result, "_meta": {**result.get("_meta", {}), wire.LOG_FIELDS: told}}
        return cast("HandlerResult", result)


class Answers:
    """Answers the requests of the host outside."""

    def __init__(self, host: Host, plugin: str, declared: Mapping[str, Tool]) -> None:
        self._host = host
        self._plugin = plugin
        self._declared = declared

    def register(self, server: Server[Any]) -> None:
        """Let *server* answer them, too."""
        handlers: dict[type[wire.Request], Callable[[Any, Context], Awaitable[object]]] = {
            wire.Describe: self._describe,
            wire.GetPrompt: self._get_prompt,
            wire.ReadResource: self._read_resource,
            wire.Complete: self._complete,
            wire.CheckHealth: self._check_health,
        }
        for kind, handler in handlers.items():
            server.add_request_handler(kind.method, kind, partial(self._answer, handler))

    async def _answer(
        self,
        handler: Callable[[Any, Context], Awaitable[object]],
        ctx: Context,
        request: wire.Request,
    ) -> dict[str, Any]:
        from mcp import MCPError  # noqa: PLC0415  - after the plugin's failures
        from mcp_types import INTERNAL_ERROR  # noqa: PLC0415  - as above

        try:
            return request.encode_result(await handler(request, ctx))
        except InputRequiredError as exc:
            asked = cast("BaseModel", exc.request)
            return asked.model_dump(by_alias=True, mode="json", exclude_none=True)
        except (ServiceError, ToolError) as exc:
            error = translated(exc) if isinstance(exc, ServiceError) else exc
            secrets = self._host.secrets()
            data = {ERROR_TYPE: error.error_type, **masked_data(error.data, secrets)}
            raise MCPError(INTERNAL_ERROR, mask(str(error), secrets), data) from None

    @property
    def _record(self) -> PluginRecord:
        return self._host.manager.records[self._plugin]

    async def _describe(self, *_: object) -> wire.Description:
        records = self._host.manager.records.values()
        models = [each.settings_type for each in records if each.settings_type]
        named = [own for model in models for own in _variables(model).items()]
        told = _description(self._record, self._host.settings, self._declared)
        # Also those of the plugins whose services it uses: this process has its own of each.
        return told.model_copy(
            update={
                "variables": tuple(name for name, _ in named),
                "secret_variables": tuple(name for name, is_secret in named if is_secret),
            }
        )

    async def _get_prompt(self, request: wire.GetPrompt, ctx: Context) -> list[Message]:
        from mcp_types import GetPromptRequestParams  # noqa: PLC0415  - as above

        from standards_mcp.server.context import ClientContext  # noqa: PLC0415  - as above

        answered = request.model_dump(include={"name", "input_responses", "request_state"})
        params = GetPromptRequestParams.model_validate(answered)
        context = ClientContext(ctx, params, LOCAL)
        given = (request.name, request.arguments, request.tools, context)
        return (await self._host.content.get_prompt(*given)).messages

    async def _read_resource(self, request: wire.ReadResource, *_: object) -> wire.Held:
        item = _named(self._host.visible().resources, request.name)
        contents = await self._host.content.read(item, request.variables)
        data, is_text = contents.data, isinstance(contents.data, str)
        text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        return wire.Held(data=text, is_text=is_text, mime_type=contents.mime_type)

    async def _complete(self, request: wire.Complete, *_: object) -> Completion:
        selection = self._host.visible()
        items: Iterable[RegisteredPrompt | RegisteredResource] = selection.resources
        items = selection.prompts if request.kind == "prompt" else items
        given = (request.argument, request.typed, request.others)
        return await self._host.content.complete(_named(items, request.name), *given)

    async def _check_health(self, request: wire.CheckHealth, *_: object) -> wire.HealthReport:
        found = {} if request.ping else await check_health(self._host.manager)
        health = found.get(self._plugin) or Health(status="ok")
        stuck = self._host.stuck_seconds(self._plugin)
        return wire.HealthReport(health=health, stuck_seconds=stuck)


def _variables(model: type[PluginSettings]) -> dict[str, bool]:
    """Return the variables that a plugin's keys have of their own, and whether each is secret."""
    own = plugin_variables(model)
    return {name: declares_secret(model, key) for key, name in own.items()}


def _named(items: Iterable[_C], name: str) -> _C:
    return next(each for each in items if each.declared == name)


def _description(
    record: PluginRecord, settings: Settings, declared: Mapping[str, Tool]
) -> wire.Description:
    if record.status in (Status.FAILED, Status.DISABLED):
        problems = masked_data([asdict(each) for each in record.problems], record.secrets)
        return wire.Description(failure=record.reason, problems=problems)
    options = settings.section(record.name).options
    contributed = record.contributions
    told: dict[str, Any] = {
        "secret": [key for key in options if long_texts(options[key]) & record.secrets],
        "title": record.title,
        "instructions": record.instructions,
        "ineffective": [
            hook for hook in get_args(wire.HostHook) if hasattr(type(record.plugin), hook)
        ],
        "tools": [
            _told(each, declared[each.declared]) | {"output_schema": each.result.schema}
            for each in contributed.tools
        ],
        "prompts": [
            _told(each, each.prompt) | {"completers": list(each.completers)}
            for each in contributed.prompts
        ],
        "resources": [
            _told(each, each.resource) | {"completers": list(each.completers)}
            for each in contributed.resources
        ],
    }
    return wire.Description.model_validate(told)


def _told(item: Contribution, declared: Tool | Prompt | Resource) -> dict[str, Any]:
    """Return what an author declared, as far as it is data, and what the host read of it."""
    data = {each.name: getattr(declared, each.name) for each in fields(declared)}
    return {
        "name": item.declared,
        "title": item.title,
        "description": item.description,
        "declared": {name: value for name, value in data.items() if name not in _TOLD_APART},
        "input_schema": item.arguments.schema,
    }
