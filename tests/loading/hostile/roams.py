"""Starts a task with its lifespan that calls sys.exit."""

import asyncio
import contextlib
import sys

from standards_mcp import Plugin, hookimpl


async def leave():
    sys.exit(0)


class RoamsPlugin(Plugin):
    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        self.task = asyncio.create_task(leave())
        yield
