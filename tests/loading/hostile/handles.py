"""Puts an exception handler into the loop that raises, and a task factory that fails."""

import asyncio

from standards_mcp import Plugin, tool


def fail(*_):
    raise KeyboardInterrupt


class HandlesPlugin(Plugin):
    @tool
    async def handle(self) -> str:
        """Handle."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(fail)
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0.01)
        return "done"
