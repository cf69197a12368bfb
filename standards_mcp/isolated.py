"""One plugin in a process of its own: what the child process runs (`isolation`).

usage: python -m standards_mcp.isolated NAME < the handover, and then MCP

The first line of stdin says which plugin it is, with its settings; secrets never stand in the list
of processes. What the plugin contributes is the description of a tool; its calls are those of any
MCP server.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import anyio
import importlib_metadata

from ._stdout import claim_standard_streams, fill_closed_streams
from .catalog import FilterExpression
from .declarations import RegisteredTool
from .discovery import PluginRecord, Status, installed_plugins
from .health import check_health
from .hookspecs import hookimpl
from .host import Host
from .isolation import CONVERT, DESCRIBE, DESCRIPTION, FILTER, HEALTH
from .loaded_settings import LoadedSettings
from .logs import configure_logging
from .plugin import Filter, Plugin, PluginContext, PluginSettings, Tool, ToolResult
from .settings import Settings
from .signatures import read_arguments

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

    from .server import build_server, serve_stdio  # noqa: PLC0415  - after the plugin's failures

    server = build_server(host, importlib_metadata.version("standards-mcp"))
    gc.freeze()
    anyio.run(serve_stdio, server, reader, writer, 1.0)
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
        records = [PluginRecord(name=name, load=_none, reason=missing)]
    helper = PluginRecord(name=_HELPER, load=lambda: _helper(lambda: host, name))
    host = Host(LoadedSettings(settings, None), installed=[*records, helper], remembers=False)
    host.load()
    return host


def _none() -> object:
    return None


def _helper(host_of: Any, name: str) -> type[Plugin[Any]]:
    """Return a plugin with the tools that only the host outside calls."""

    class Helper(Plugin[PluginSettings]):
        def __init__(self, settings: PluginSettings, context: PluginContext) -> None:
            super().__init__(settings, context)

        @hookimpl
        def register_tools(self) -> list[Tool]:
            def describe() -> None:
                """Describe the plugin."""

            def convert(filter: FilterExpression | None) -> dict[str, Any]:  # noqa: A002
                """Turn the values of filters into one expression."""
                return {"expression": filter}

            async def health(ping: bool = False) -> ToolResult:  # noqa: FBT001, FBT002
                """Say how the plugin is."""
                return await _health(host_of(), name, ping=ping)

            meta = _Description(host_of, name)
            return [
                Tool(name=DESCRIBE, function=describe, meta=meta),
                Tool(name=CONVERT, function=convert, accepts_filters=True),
                Tool(name=HEALTH, function=health),
            ]

        @hookimpl
        def register_filters(self) -> list[Filter]:
            return [
                Filter(
                    name=FILTER,
                    annotation=dict[str, Any],
                    description="An expression that is ready.",
                    to_expression=lambda value: value,
                )
            ]

    return Helper


async def _health(host: Host, name: str, *, ping: bool) -> ToolResult:
    told = None if ping else (await check_health(host.manager)).get(name)
    health = {"status": told.status, "message": told.message} if told else {"status": "ok"}
    return ToolResult(text=json.dumps(health), structured={"message": "", **health})


class _Description(Mapping[str, Any]):
    """What the plugin contributes, made anew whenever the tools are listed."""

    def __init__(self, host_of: Any, name: str) -> None:
        self._host_of = host_of
        self._name = name

    def __getitem__(self, key: str) -> Any:
        if key != DESCRIPTION:
            raise KeyError(key)
        try:
            host: Host = self._host_of()
        except NameError:  # the host is being made
            return {}
        return _description(host, self._name)

    def __iter__(self) -> Iterator[str]:
        yield DESCRIPTION

    def __len__(self) -> int:
        return 1


def _description(host: Host, name: str) -> dict[str, Any]:
    record = host.manager.records[name]
    if record.status is Status.FAILED:
        return {"failure": record.reason}
    convert = host.offering.find(CONVERT)
    values: Mapping[str, Any] = convert.arguments.schema["properties"] if convert else {}
    left_out = [hook for hook in _LEFT_OUT if hasattr(type(record.plugin), hook)]
    notice = f"{' and '.join(left_out)} has no effect: the plugin is isolated" if left_out else ""
    return {
        "notice": notice,
        "tools": [_tool(item) for item in record.tools],
        "filters": [
            {"name": item.name, "description": item.description, "schema": values[item.name]}
            for item in record.filters
        ],
    }


def _tool(item: RegisteredTool) -> dict[str, Any]:
    fields = {name: getattr(item.tool, name) for name in _TOOL_FIELDS}
    texts = {"title": item.title, "description": item.description, "meta": dict(item.tool.meta)}
    return {
        "tool": fields | texts,
        "input_schema": read_arguments(item.tool).schema,
        "output_schema": item.result.schema,
    }


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


if __name__ == "__main__":
    main()
