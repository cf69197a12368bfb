"""Leaves a task behind that is deaf to being cancelled."""

import asyncio
import contextlib

from standards_mcp import Plugin, tool


async def linger_on():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


class LingersPlugin(Plugin):
    @tool
    async def linger(self) -> str:
        """Linger."""
        self.task = asyncio.create_task(linger_on())
        await asyncio.sleep(0)
        return "done"
