"""Stops the event loop."""

import asyncio

from standards_mcp import Plugin, tool


class HaltsPlugin(Plugin):
    @tool
    async def halt(self) -> str:
        """Halt."""
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.05)
        return "done"
