"""One plugin in a process of its own: what the child process runs (`isolation`).

usage: python -m standards_mcp.server.worker NAME < the handover, and then MCP

The first line of stdin says which plugin it is, with its settings; secrets never stand in the list
of processes. What the plugin contributes is the description of a tool; its calls are those of any
MCP server.
"""

from __future__ import annotations

import base64
import gc
import json
import logging
import os
import select
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from typing import Any, ClassVar, Final

import anyio

from standards_mcp._utils.logs import configure_logging
from standards_mcp._utils.secrets import long_texts, masked_data
from standards_mcp._utils.streams import claim_standard_streams, fill_closed_streams
from standards_mcp.catalog.base import FilterExpression
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.arguments import read_arguments
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.hookspecs import hookimpl
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginInfo, Status
from standards_mcp.plugin import Filter, Health, Plugin, PluginSettings, Tool
from standards_mcp.remote.isolated.calls import HEALTH
from standards_mcp.remote.isolated.contributions import COMPLETE, PROMPT, READ
from standards_mcp.remote.isolated.protocol import CONVERT, DESCRIBE, DESCRIPTION, FILTER

_NO_LIMIT: Final = 1_000_000_000

_HELPER: Final = "standards_mcp_helper"

_LEFT_OUT: Final = ("register_commands", "wrap_tool_call")

_TOOL_FIELDS: Final = (
    "name",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "accepts_filters",
    "timeout",
    "cache_ttl",
)


def main() -> None:
    """Serve the plugin that the first line of stdin describes, until stdin is closed."""
    fill_closed_streams()
    handover = json.loads(_first_line(0))
    _limit_memory(handover["memory"])
    _end_with_parent()
    host: Host | None = None
    configure_logging(logging.WARNING, lambda: host.secrets() if host else ())
    reader, writer = claim_standard_streams()
    host = _host(handover)

    from .run import run  # noqa: PLC0415  - after the plugin's failures
    from .stdio import serve_stdio  # noqa: PLC0415  - as above

    gc.freeze()
    transport = partial(serve_stdio, reader=reader, writer=writer, drain_seconds=1.0)
    anyio.run(partial(run, host, transport))
    # A plugin's threads may never end, and nobody waits for them.
    logging.shutdown()
    os._exit(0)


def _host(handover: Mapping[str, Any]) -> Host:
    """Return a host of this one plugin and of what the host outside needs of it."""
    limits: Any = {"timeout": _NO_LIMIT, "max_output_tokens": _NO_LIMIT, "concurrency": 1000}
    settings = Settings(**handover["settings"], tools=limits, tool_names="declared")
    name = handover["name"]
    records = [record for record in installed_plugins() if record.name == name]
    if not records:
        missing = f"it is not installed in {sys.prefix}"
        records = [PluginInfo(name=name, load=_none, error=missing)]
    place = _Place(name)
    helper = PluginInfo(name=_HELPER, load=lambda: type("Helper", (_Helper,), {"place": place}))
    place.host = Host(LoadedSettings(settings, None), installed=[*records, helper], remembers=False)
    place.host.load()
    return place.host


def _none() -> object:
    return None


@dataclass
class _Place:
    """Where the helper is: the host is set once there is one.

    Attributes:
        plugin: The name of the plugin that is isolated.
    """

    plugin: str
    host: Host = field(init=False)


class _Helper(Plugin[PluginSettings]):
    """The tools that only the host outside calls."""

    place: ClassVar[_Place]

    @hookimpl
    def register_tools(self) -> list[Tool]:
        meta = _Description(self.place)
        return [
            Tool(name=DESCRIBE, function=self.describe, meta=meta),
            Tool(name=CONVERT, function=self.convert, accepts_filters=True),
            Tool(name=PROMPT, function=self.prompt),
            Tool(name=READ, function=self.read),
            Tool(name=COMPLETE, function=self.complete),
            Tool(name=HEALTH, function=self.health),
        ]

    @hookimpl
    def register_filters(self) -> list[Filter]:
        description = "An expression that the host outside made of the values of its own filters."
        return [
            Filter(
                name=FILTER, annotation=dict[str, Any], description=description, to_expression=_same
            )
        ]

    def describe(self) -> None:
        """Describe the plugin."""

    def convert(self, filter: FilterExpression | None) -> dict[str, Any]:  # noqa: A002
        """InputResponses the values of filters into one expression."""
        return {"expression": filter}

    async def prompt(
        self, name: str, arguments: dict[str, Any], tools: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Return what a prompt says."""
        messages = await self.place.host.content.get_prompt(name, arguments, tools or {})
        return {"messages": [asdict(each) for each in messages]}

    async def read(self, name: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Return what a resource holds."""
        host = self.place.host
        item = next(each for each in host.visible().resources if each.declared == name)
        contents = await host.content.read(item, variables)
        data, is_text = contents.data, isinstance(contents.data, str)
        text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        return {"data": text, "is_text": is_text, "mime_type": contents.mime_type}

    async def complete(
        self, kind: str, name: str, argument: str, typed: str, others: dict[str, str]
    ) -> dict[str, Any]:
        """Return values for an argument of a prompt or a resource."""
        host = self.place.host
        items = host.visible().prompts if kind == "prompt" else host.visible().resources
        item = next(each for each in items if each.declared == name)
        return {"values": await host.content.complete(item, argument, typed, others)}

    async def health(self, ping: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Say how the plugin is; a *ping* asks only whether it still answers, and what is stuck."""
        found = {} if ping else await check_health(self.place.host.manager)
        told = found.get(self.place.plugin) or Health(status="ok")
        stuck = self.place.host.stuck_seconds(self.place.plugin)
        return {"status": told.status, "message": told.message, "stuck_seconds": stuck}


def _same(value: FilterExpression) -> FilterExpression:
    return value


class _Description(Mapping[str, Any]):
    """What the plugin contributes, made anew whenever the tools are listed."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    def __getitem__(self, key: str) -> Any:
        if key != DESCRIPTION:
            raise KeyError(key)
        return _description(self._place.host, self._place.plugin)

    def __iter__(self) -> Iterator[str]:
        yield DESCRIPTION

    def __len__(self) -> int:
        return 1


def _description(host: Host, name: str) -> dict[str, Any]:
    record = host.manager.records[name]
    if record.status is Status.FAILED:
        problems = [list(astuple(each)) for each in record.problems]
        return {"failure": record.reason, "problems": masked_data(problems, record.secrets)}
    convert = host.visible().find(CONVERT)
    values: Mapping[str, Any] = convert.arguments.schema["properties"] if convert else {}
    left_out = [hook for hook in _LEFT_OUT if hasattr(type(record.plugin), hook)]
    notice = f"{' and '.join(left_out)} has no effect: the plugin is isolated" if left_out else ""
    options = host.settings.section(name).options
    return {
        "instructions": record.plugin.instructions if record.plugin else "",
        "secret": [key for key, value in options.items() if long_texts(value) & record.secrets],
        "notice": notice,
        "tools": [_tool(item) for item in record.contributions.tools],
        "filters": [
            {
                "name": item.name,
                "description": item.filter.description,
                "schema": values[item.name],
            }
            for item in record.contributions.filters
        ],
        "prompts": [_prompt(item) for item in record.contributions.prompts],
        "resources": [_resource(item) for item in record.contributions.resources],
    }


def _tool(item: RegisteredTool) -> dict[str, Any]:
    fields = {name: getattr(item.tool, name) for name in _TOOL_FIELDS}
    texts = {"title": item.title, "description": item.description, "meta": dict(item.tool.meta)}
    return {
        "tool": fields | texts,
        "input_schema": read_arguments(item.tool).schema,
        "output_schema": item.result.schema,
    }


def _prompt(item: RegisteredPrompt) -> dict[str, Any]:
    return _common(item) | {
        "name": item.declared,
        "needs": item.prompt.needs,
        "uses": item.prompt.uses,
        "complete": list(item.prompt.complete),
    }


def _resource(item: RegisteredResource) -> dict[str, Any]:
    return _common(item) | {
        "name": item.declared,
        "uri": item.resource.uri,
        "mime_type": item.resource.mime_type,
        "complete": list(item.resource.complete),
    }


def _common(item: Contribution) -> dict[str, Any]:
    return {"title": item.title, "description": item.description, "schema": item.arguments.schema}


def _first_line(descriptor: int) -> bytes:
    """Read one line and nothing beyond, which is of the protocol."""
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
