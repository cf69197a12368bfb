"""Hosts with plugins, as tests start them and look at them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from standards_mcp import ToolResult
from standards_mcp.host import Host

from .waiting import PAUSE, WAIT

Entry: TypeAlias = Callable[..., dict[str, Any]]
"""Returns the table of a server that uses a folder, with more keys."""


def entry_of(script: str) -> Entry:
    """Return what makes tables of a server of this package, by the name of its file."""

    def entry(folder: Path, **keys: Any) -> dict[str, Any]:
        folder.mkdir(exist_ok=True)
        file = Path(__file__).with_name(script)
        return {"command": sys.executable, "args": [str(file), str(folder)], **keys}

    return entry


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
