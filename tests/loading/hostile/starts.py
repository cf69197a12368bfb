"""Calls sys.exit in its lifespan, before it has started."""

import contextlib
import sys

from standards_mcp import Plugin, hookimpl


class StartsPlugin(Plugin):
    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        sys.exit(0)
        yield
