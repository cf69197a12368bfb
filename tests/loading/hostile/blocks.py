"""Blocks the event loop in an async function."""

import time

from standards_mcp import Plugin, Tool, hookimpl


class BlocksPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        async def block(seconds: float = 0.2) -> str:
            time.sleep(seconds)
            return "done"

        return [Tool(name="block", description="Block.", function=block)]
