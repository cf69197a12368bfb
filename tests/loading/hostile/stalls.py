"""Has a lifespan that never starts, and that is deaf to being cancelled."""

import asyncio
import contextlib

from standards_mcp import Plugin, Tool, hookimpl


class StallsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name="stall", description="Stall.", function=lambda: "done")]

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
        yield
