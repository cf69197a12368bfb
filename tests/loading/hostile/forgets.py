"""Leaves threads, tasks, files, sockets and generators behind."""

import asyncio
import contextlib
import socket
import threading

from standards_mcp import Plugin, hookimpl, tool


async def generate():
    try:
        while True:
            yield 1
    finally:
        await asyncio.sleep(3600)


class ForgetsPlugin(Plugin):
    @tool
    async def forget(self) -> str:
        """Forget."""
        threading.Thread(target=threading.Event().wait).start()
        self.task = asyncio.create_task(asyncio.sleep(3600))
        self.socket = socket.socket()
        self.numbers = generate()
        await anext(self.numbers)
        return "done"

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        threading.Thread(target=threading.Event().wait).start()
        yield
