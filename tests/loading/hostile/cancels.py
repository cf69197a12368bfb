"""Cancels every task of the event loop."""

import asyncio

from standards_mcp import Plugin, tool


class CancelsPlugin(Plugin):
    @tool
    async def cancel(self) -> str:
        """Cancel."""
        for task in asyncio.all_tasks():
            task.cancel()
        return "done"
