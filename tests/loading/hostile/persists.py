"""Swallows the cancellation of its call, and of a task that it leaves behind."""

import asyncio
import contextlib

from standards_mcp import Plugin, tool


async def persist_on():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


class PersistsPlugin(Plugin):
    @tool(timeout=0.2)
    async def persist(self) -> str:
        """Persist."""
        await persist_on()
        return "done"
