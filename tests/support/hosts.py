"""Hosts with plugins, as tests start them and look at them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from mcp import Client

from standards_mcp import Plugin, Tool, ToolResult, hookimpl
from standards_mcp.config.loading import load_settings
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.host import Host

from .waiting import PAUSE, WAIT

MakeHost: TypeAlias = Callable[..., Host]
Install: TypeAlias = Callable[..., Path]
OpenClient: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]
"""The fixtures `make_host`, `install` and `open_client` return these."""

Entry: TypeAlias = Callable[..., dict[str, Any]]
"""Returns the table of a server that uses a folder, with more keys."""


MODERN = ["-P", str(Path(__file__).with_name("modern_server.py"))]
"""The program of a server of the 2026 generation, without this folder on its path: see `http`."""


def entry_of(script: str) -> Entry:
    """Return what makes tables of a server of this package, by the name of its file."""

    def entry(folder: Path, **keys: Any) -> dict[str, Any]:
        folder.mkdir(exist_ok=True)
        file = Path(__file__).with_name(script)
        return {"command": sys.executable, "args": [str(file), str(folder)], **keys}

    return entry


def plain_tool(name: str, description: str = "Fine.", **annotations: bool) -> dict[str, Any]:
    """Return a definition for the file from which `plain_server.py` lists its tools."""
    schema = {"type": "object", "properties": {"value": {}}}
    fields = {"name": name, "description": description, "inputSchema": schema}
    return fields | {"annotations": annotations}


def configured(timing: Timing = DEFAULT_TIMING, **settings: Any) -> Host:
    """Load a host of all installed plugins, by the configuration and these settings."""
    host = Host(load_settings(overrides=settings), timing=timing)
    host.load()
    return host


@asynccontextmanager
async def started(host: Host) -> AsyncGenerator[Host]:
    """Run a host, and give it once all its plugins have started."""
    async with host.running():
        await host.manager.wait_listed()
        yield host


def served(host: Host) -> list[str]:
    """Return the names of the tools that clients get."""
    return [item.published for item in host.visible().visible_tools]


async def until_answered(
    host: Host, tool: str, arguments: Mapping[str, Any] | None = None
) -> ToolResult:
    """Call a tool of what failed until it is back, and return its first answer."""
    with anyio.fail_after(WAIT):
        while (result := await host.call_tool(tool, dict(arguments or {}))).is_error:  # noqa: ASYNC110
            await anyio.sleep(PAUSE)
    return result


def plugin_with(*tools: Tool) -> type[Plugin[Any]]:
    """Return a plugin that declares these tools."""
    return type("Made", (Plugin,), {"register_tools": hookimpl(lambda _: tools)})


def message_of(result: ToolResult) -> str:
    """Return what the result of a call that failed says."""
    assert result.is_error
    return (result.structured or {})["message"]


def error_type(result: ToolResult) -> str:
    """Return the type of the error that a call came to, or an empty text."""
    return (result.structured or {}).get("error_type", "")


async def names_of(client: Client) -> list[str]:
    """Return the names of the tools that a client gets."""
    return [tool.name for tool in (await client.list_tools()).tools]
