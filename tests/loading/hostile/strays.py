"""Raises what ends programs in tasks and callbacks of the event loop."""

import asyncio

from standards_mcp import Plugin, tool


def fail(kind):
    raise kind


async def fail_later(kind):
    raise kind


class StraysPlugin(Plugin):
    @tool
    async def stray(self) -> str:
        """Stray."""
        loop = asyncio.get_running_loop()
        self.tasks = [
            asyncio.create_task(fail_later(kind)) for kind in (SystemExit, KeyboardInterrupt)
        ]
        loop.call_soon(fail, SystemExit)
        loop.call_later(0.01, fail, KeyboardInterrupt)
        await asyncio.sleep(0.1)
        return "done"
