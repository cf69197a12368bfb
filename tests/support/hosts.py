"""Hosts with plugins, as tests start them and look at them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from standards_mcp import ToolResult
from standards_mcp.host import Host

from .waiting import PAUSE, WAIT


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
