"""Writes to stdout, by every way that there is, from every place that it is called at."""

import asyncio
import atexit
import contextlib
import os
import subprocess
import sys

from standards_mcp import Plugin, Tool, hookimpl


def shout():
    print("print")
    sys.stdout.write("without a flush")
    sys.__stdout__.write("by the other name\n")
    os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}\n')
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)


async def shout_on():
    while True:
        print("still here")
        await asyncio.sleep(0.01)


shout()
atexit.register(shout)


class PrintsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        def shout_once() -> str:
            shout()
            return "done"

        shout()
        return [Tool(name="shout", description="Shout.", function=shout_once)]

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        task = asyncio.create_task(shout_on())
        shout()
        yield
        task.cancel()
        shout()
