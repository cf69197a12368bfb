"""The calls of tools by one command: in one event loop, by the plugins that they need."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import click

from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp.errors import UnknownToolError
from standards_mcp.host import Host
from standards_mcp.plugin import ToolResult


class ToolCalls:
    """Calls tools one after the other; a plugin is started by the first call that needs it.

    Args:
        host: It has loaded its plugins, and does not run.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runner = asyncio.Runner()
        self._running = AsyncExitStack()

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool by its published or its declared name. See `Host.call_tool`.

        Raises:
            click.UsageError: The tool is unknown.
        """
        try:
            with divert_stdout():
                return self._runner.run(self._call(name, arguments))
        except UnknownToolError as exc:
            raise click.UsageError(f"{exc} (`standards-mcp tools` lists them)") from None

    def close(self) -> None:
        """Stop the plugins."""
        with divert_stdout(), self._runner:
            self._runner.run(self._running.aclose())

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        needed = self._host.plugins_behind(name)
        await self._running.enter_async_context(self._host.running(needed))
        return await self._host.call_tool(name, arguments)
