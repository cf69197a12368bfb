"""One plugin in a process of its own: what the child process runs.

usage: python -m standards_mcp.server.worker NAME < a line of configuration, and then MCP

The first line of stdin says which plugin it is, with its settings; secrets never stand in the list
of processes. Its tools are called as those of any MCP server. Everything else is asked by requests
of this host's own (`standards_mcp.remote.isolated.protocol`).
"""

from __future__ import annotations

import base64
import gc
import logging
import os
import select
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from pydantic import BaseModel

from standards_mcp._utils.logs import configure_logging
from standards_mcp._utils.secrets import long_texts, mask, masked_data
from standards_mcp._utils.streams import claim_standard_streams, fill_closed_streams
from standards_mcp.calls.context import LOCAL, Principal
from standards_mcp.calls.steps.errors import translated
from standards_mcp.catalog.errors import CatalogError
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.arguments import Arguments, filter_arguments, read_arguments
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.schemas import Schema
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import FilterFailedError, ToolError
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginInfo, PluginRecord, Status
from standards_mcp.plugin import Filter, Health, Message, Tool
from standards_mcp.remote.errors import ERROR_TYPE
from standards_mcp.remote.isolated import protocol as wire

if TYPE_CHECKING:
    from mcp.server import Server

    from .context import Context
    from .server import HostServer

log = logging.getLogger(__name__)

_C = TypeVar("_C", bound=Contribution)

_NO_LIMIT: Final = 1_000_000_000

_LEFT_OUT: Final = ("register_commands", "wrap_tool_call")


def main() -> None:
    """Serve the plugin that the first line of stdin describes, until stdin is closed."""
    fill_closed_streams()
    config = wire.WorkerConfig.model_validate_json(_first_line(0))
    _limit_memory(config.memory)
    _end_with_parent()
    host: Host | None = None
    configure_logging(logging.WARNING, lambda: host.secrets() if host else ())
    reader, writer = claim_standard_streams()
    host, declared = _load(config)

    from .run import run  # noqa: PLC0415  - after the plugin's failures
    from .stdio import serve_stdio  # noqa: PLC0415  - as above

    async def transport(server: HostServer) -> None:
        _Answers(host, config.name, declared).register(server)
        await serve_stdio(server, reader=reader, writer=writer, drain_seconds=1.0)

    def principal_of(ctx: Context) -> Principal:
        return Principal(str((ctx.meta or {}).get(wire.CALLER, LOCAL.name)))

    gc.freeze()
    anyio.run(partial(run, host, transport, principal_of=principal_of))
    # A plugin's threads may never end, and nobody waits for them.
    logging.shutdown()
    os._exit(0)


def _load(config: wire.WorkerConfig) -> tuple[Host, Mapping[str, Tool]]:
    """Return a host of this one plugin, and its tools as declared.

    It has no limits and keeps no answers: that is done outside.
    """
    limits: Any = {"timeout": _NO_LIMIT, "max_output_tokens": _NO_LIMIT, "concurrency": 1000}
    settings = Settings(**config.settings, tools=limits, tool_names="declared")
    plugins = [info for info in installed_plugins() if info.name == config.name]
    if not plugins:
        missing = f"it is not installed in {sys.prefix}"
        plugins = [PluginInfo(name=config.name, load=lambda: None, error=missing)]
    host = Host(LoadedSettings(settings, None), installed=plugins, remembers=False)
    host.load()
    record = host.manager.records[config.name]
    declared = {item.declared: item.tool for item in record.contributions.tools}
    tools = tuple(map(_unlimited, record.contributions.tools))
    host.manager.set_contributions(record, replace(record.contributions, tools=tools))
    return host, declared


def _unlimited(item: RegisteredTool) -> RegisteredTool:
    """Return a tool of which no answer is kept, and that takes an expression in place of filters.

    Both are the business of the host outside, which also knows the filters of other plugins.
    """
    item = replace(item, tool=replace(item.tool, cache_ttl=0))
    if not item.tool.accepts_filters:
        return item
    return replace(item, arguments=_ExpressionArguments(read_arguments(item.tool)))


@dataclass(frozen=True, slots=True)
class _ExpressionArguments:
    """A tool's own arguments, and an expression. See `Arguments`."""

    own: Arguments

    @property
    def schema(self) -> Schema:
        return self.own.schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        expression = given.pop(wire.FILTER_ARGUMENT, None)
        return {**await self.own.validate(given), "filter": expression}


class _Answers:
    """Answers the requests of the host outside."""

    def __init__(self, host: Host, plugin: str, declared: Mapping[str, Tool]) -> None:
        self._host = host
        self._plugin = plugin
        self._declared = declared

    def register(self, server: Server[Any]) -> None:
        """Let *server* answer them, too."""
        handlers: dict[type[wire.Request], Callable[[Any], Awaitable[object]]] = {
            wire.Describe: self._describe,
            wire.ConvertFilters: self._convert_filters,
            wire.GetPrompt: self._get_prompt,
            wire.ReadResource: self._read_resource,
            wire.Complete: self._complete,
            wire.CheckHealth: self._check_health,
        }
        for kind, handler in handlers.items():
            server.add_request_handler(kind.method, kind, partial(self._answer, handler))

    async def _answer(
        self, handler: Callable[[Any], Awaitable[object]], _: object, request: wire.Request
    ) -> dict[str, Any]:
        from mcp import MCPError  # noqa: PLC0415  - after the plugin's failures
        from mcp_types import INTERNAL_ERROR  # noqa: PLC0415  - as above

        try:
            return request.encode_result(await handler(request))
        except (CatalogError, ToolError) as exc:
            error = translated(exc) if isinstance(exc, CatalogError) else exc
            message = mask(str(error), self._host.secrets())
            raise MCPError(INTERNAL_ERROR, message, {ERROR_TYPE: error.error_type}) from None

    @property
    def _record(self) -> PluginRecord:
        return self._host.manager.records[self._plugin]

    async def _describe(self, _: wire.Describe) -> wire.Description:
        return _description(self._record, self._host.settings, self._declared)

    async def _convert_filters(self, request: wire.ConvertFilters) -> Any:
        try:
            filters = _filters(self._record)
            given = await filter_arguments(filters).validate(request.values)
        except FilterFailedError as exc:
            log.exception("a filter failed", extra={"plugin": self._plugin})
            raise ToolError(exc.reason) from None
        return given["filter"]

    async def _get_prompt(self, request: wire.GetPrompt) -> list[Message]:
        content = self._host.content
        return await content.get_prompt(request.name, request.arguments, request.tools)

    async def _read_resource(self, request: wire.ReadResource) -> wire.Held:
        item = _named(self._host.visible().resources, request.name)
        contents = await self._host.content.read(item, request.variables)
        data, is_text = contents.data, isinstance(contents.data, str)
        text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        return wire.Held(data=text, is_text=is_text, mime_type=contents.mime_type)

    async def _complete(self, request: wire.Complete) -> list[str]:
        selection = self._host.visible()
        items: Iterable[RegisteredPrompt | RegisteredResource] = selection.resources
        items = selection.prompts if request.kind == "prompt" else items
        given = (request.argument, request.typed, request.others)
        return await self._host.content.complete(_named(items, request.name), *given)

    async def _check_health(self, request: wire.CheckHealth) -> wire.HealthReport:
        found = {} if request.ping else await check_health(self._host.manager)
        health = found.get(self._plugin) or Health(status="ok")
        stuck = self._host.stuck_seconds(self._plugin)
        return wire.HealthReport(health=health, stuck_seconds=stuck)


def _filters(record: PluginRecord) -> tuple[Filter, ...]:
    return tuple(each.filter for each in record.contributions.filters)


def _named(items: Iterable[_C], name: str) -> _C:
    return next(each for each in items if each.declared == name)


def _description(
    record: PluginRecord, settings: Settings, declared: Mapping[str, Tool]
) -> wire.Description:
    if record.status is Status.FAILED:
        problems = masked_data([asdict(each) for each in record.problems], record.secrets)
        return wire.Description(failure=record.reason, problems=problems)
    hooks = [hook for hook in _LEFT_OUT if hasattr(type(record.plugin), hook)]
    options = settings.section(record.name).options
    filters, contributed = _filters(record), record.contributions
    values = filter_arguments(filters).schema["properties"]
    told: dict[str, Any] = {
        "secret": [key for key in options if long_texts(options[key]) & record.secrets],
        "instructions": record.plugin.instructions if record.plugin else "",
        "notice": f"{' and '.join(hooks)} has no effect: the plugin is isolated" if hooks else "",
        "tools": [
            _told(wire.ToolDescription, each, declared[each.declared])
            | {"output_schema": each.result.schema}
            for each in contributed.tools
        ],
        "filters": [
            {"name": each.name, "description": each.description, "value_schema": values[each.name]}
            for each in filters
        ],
        "prompts": [
            _told(wire.PromptDescription, each, each.prompt) for each in contributed.prompts
        ],
        "resources": [
            _told(wire.ResourceDescription, each, each.resource) for each in contributed.resources
        ],
    }
    return wire.Description.model_validate(told)


def _told(kind: type[BaseModel], item: Contribution, declared: object) -> dict[str, Any]:
    """Return the fields of *kind*: what its author declared, and what the host read of it."""
    fields = {name: getattr(declared, name, None) for name in kind.model_fields}
    if isinstance(item, RegisteredPrompt | RegisteredResource):
        fields["complete"] = list(item.completers)
    read = {"title": item.title, "description": item.description}
    return fields | read | {"input_schema": item.arguments.schema}


def _first_line(descriptor: int) -> bytes:
    """Read one line and nothing beyond: what follows it belongs to the protocol."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def _limit_memory(size: int | None) -> None:
    if size is None:
        return
    try:
        import resource  # noqa: PLC0415  - not on Windows
    except ImportError:
        return
    with suppress(ValueError, OSError):  # more than the system allows is no limit
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _end_with_parent() -> None:
    """Let the kernel end this process when the host is killed, where it can."""
    if sys.platform != "linux":
        return  # stdin is closed then, by which the server ends
    import ctypes  # noqa: PLC0415  - only here

    set_parent_death_signal = 1
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    stdin = select.poll()
    stdin.register(0, 0)
    if any(event & select.POLLHUP for _, event in stdin.poll(0)):
        os._exit(0)  # it was killed before that, of which nothing is told any more


if __name__ == "__main__":
    main()
