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
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import importlib_metadata
from pydantic import BaseModel

from standards_mcp._utils.logs import configure_logging
from standards_mcp._utils.secrets import long_texts, mask, masked_data
from standards_mcp._utils.streams import claim_standard_streams, fill_closed_streams
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
from standards_mcp.loading.records import PluginRecord, Status
from standards_mcp.plugin import Health
from standards_mcp.remote.isolated.protocol import (
    FILTER_ARGUMENT,
    CheckHealth,
    Complete,
    ConvertFilters,
    Describe,
    Description,
    Expression,
    FilterDescription,
    GetPrompt,
    HealthReport,
    Held,
    Messages,
    Params,
    PromptDescription,
    ReadResource,
    ResourceDescription,
    ToolDescription,
    Values,
    WorkerConfig,
)

if TYPE_CHECKING:
    from mcp.server import Server

log = logging.getLogger(__name__)

_C = TypeVar("_C", bound=Contribution)

_NO_LIMIT: Final = 1_000_000_000

_LEFT_OUT: Final = ("register_commands", "wrap_tool_call")


def main() -> None:
    """Serve the plugin that the first line of stdin describes, until stdin is closed."""
    fill_closed_streams()
    config = WorkerConfig.model_validate_json(_first_line(0))
    _limit_memory(config.memory)
    _end_with_parent()
    host: Host | None = None
    configure_logging(logging.WARNING, lambda: host.secrets() if host else ())
    reader, writer = claim_standard_streams()
    host = _load(config)

    from .server import build_server, serve_stdio  # noqa: PLC0415  - after the plugin's failures

    server = build_server(host, importlib_metadata.version("standards-mcp"))
    _Answers(host, config.name).register(server)
    gc.freeze()
    anyio.run(serve_stdio, server, reader, writer, 1.0)
    # A plugin's threads may never end, and nobody waits for them.
    logging.shutdown()
    os._exit(0)


def _load(config: WorkerConfig) -> Host:
    """Return a host of this one plugin, without limits: those are kept outside."""
    limits: Any = {"timeout": _NO_LIMIT, "max_output_tokens": _NO_LIMIT, "concurrency": 1000}
    settings = Settings(**config.settings, tools=limits, tool_names="declared")
    records = [record for record in installed_plugins() if record.name == config.name]
    if not records:
        missing = f"it is not installed in {sys.prefix}"
        records = [PluginRecord(name=config.name, load=_none, reason=missing)]
    host = Host(LoadedSettings(settings, None), installed=records, remembers=False)
    host.load()
    record = host.manager.records[config.name]
    record.tools = tuple(map(_taking_expression, record.tools))
    return host


def _none() -> object:
    return None


def _taking_expression(item: RegisteredTool) -> RegisteredTool:
    """Return a tool that takes an expression in place of filters: those are applied outside.

    Outside are also the filters of other plugins, of which nothing is known here.
    """
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
        expression = given.pop(FILTER_ARGUMENT, None)
        return {**await self.own.validate(given), "filter": expression}


class _Answers:
    """Answers the requests of the host outside."""

    def __init__(self, host: Host, plugin: str) -> None:
        self._host = host
        self._plugin = plugin

    def register(self, server: Server[Any]) -> None:
        """Let *server* answer them, too."""
        self._add(server, Describe, self._describe)
        self._add(server, ConvertFilters, self._convert_filters)
        self._add(server, GetPrompt, self._get_prompt)
        self._add(server, ReadResource, self._read_resource)
        self._add(server, Complete, self._complete)
        self._add(server, CheckHealth, self._check_health)

    def _add(
        self,
        server: Server[Any],
        params_type: type[Params],
        handler: Callable[[Any], Awaitable[BaseModel]],
    ) -> None:
        from mcp import MCPError  # noqa: PLC0415  - after the plugin's failures
        from mcp_types import INTERNAL_ERROR  # noqa: PLC0415  - as above

        async def answer(_: object, params: Params) -> dict[str, Any]:
            try:
                return (await handler(params)).model_dump(mode="json")
            except ToolError as exc:
                message = mask(str(exc), self._host.secrets())
                data = {"error_type": exc.error_type}
                raise MCPError(INTERNAL_ERROR, message, data) from None

        server.add_request_handler(params_type.method, params_type, answer)

    @property
    def _record(self) -> PluginRecord:
        return self._host.manager.records[self._plugin]

    async def _describe(self, _: Describe) -> Description:
        return _description(self._record, self._host.settings)

    async def _convert_filters(self, params: ConvertFilters) -> Expression:
        try:
            converted = await filter_arguments(self._record.filters).validate(params.values)
        except FilterFailedError as exc:
            log.exception("a filter failed")
            raise ToolError(exc.reason) from None
        return Expression(expression=converted["filter"])

    async def _get_prompt(self, params: GetPrompt) -> Messages:
        content = self._host.content
        messages = await content.get_prompt(params.name, params.arguments, params.tools)
        return Messages(messages=messages)

    async def _read_resource(self, params: ReadResource) -> Held:
        item = _named(self._host.selection.resources, params.name)
        contents = await self._host.content.read(item, params.variables)
        data, is_text = contents.data, isinstance(contents.data, str)
        text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        return Held(data=text, is_text=is_text, mime_type=contents.mime_type)

    async def _complete(self, params: Complete) -> Values:
        selection = self._host.selection
        items: Iterable[RegisteredPrompt | RegisteredResource] = selection.resources
        items = selection.prompts if params.kind == "prompt" else items
        given = (params.argument, params.typed, params.others)
        found = await self._host.content.complete(_named(items, params.name), *given)
        return Values(values=found)

    async def _check_health(self, params: CheckHealth) -> HealthReport:
        found = {} if params.ping else await check_health(self._host.manager)
        health = found.get(self._plugin) or Health(status="ok")
        stuck = self._host.stuck_seconds(self._plugin)
        return HealthReport(health=health, stuck_seconds=stuck)


def _named(items: Iterable[_C], name: str) -> _C:
    return next(each for each in items if each.declared == name)


def _description(record: PluginRecord, settings: Settings) -> Description:
    if record.status is Status.FAILED:
        mistakes = masked_data([asdict(each) for each in record.mistakes], record.secrets)
        return Description(failure=record.reason, mistakes=mistakes)
    hooks = [hook for hook in _LEFT_OUT if hasattr(type(record.plugin), hook)]
    notice = f"{' and '.join(hooks)} has no effect: the plugin is isolated" if hooks else ""
    options = settings.section(record.name).options
    values = filter_arguments(record.filters).schema["properties"]
    return Description(
        secret=tuple(key for key in options if long_texts(options[key]) & record.secrets),
        notice=notice,
        tools=tuple(map(_tool, record.tools)),
        filters=tuple(
            FilterDescription(
                name=item.name, description=item.description, value_schema=values[item.name]
            )
            for item in record.filters
        ),
        prompts=tuple(
            PromptDescription(
                **_common(item),
                needs=item.prompt.needs,
                uses=item.prompt.uses,
                complete=tuple(item.completers),
            )
            for item in record.prompts
        ),
        resources=tuple(
            ResourceDescription(
                **_common(item),
                uri=item.resource.uri,
                mime_type=item.resource.mime_type,
                complete=tuple(item.completers),
            )
            for item in record.resources
        ),
    )


def _tool(item: RegisteredTool) -> ToolDescription:
    declared = {name: getattr(item.tool, name, None) for name in ToolDescription.model_fields}
    read = {**_common(item), "output_schema": item.result.schema}
    return ToolDescription.model_validate(declared | read)


def _common(item: Contribution) -> dict[str, Any]:
    return {
        "name": item.declared,
        "title": item.title,
        "description": item.description,
        "input_schema": item.arguments.schema,
    }


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
