"""Closes the standard streams, at import and wherever else it can."""

import contextlib
import os
import sys

from standards_mcp import Plugin, Tool, hookimpl


def close():
    with contextlib.suppress(OSError):
        os.close(1)
    sys.stdout.close()


close()


class ClosesPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        def close_again() -> str:
            close()
            return "done"

        close()
        return [Tool(name="close", description="Close.", function=close_again)]

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        close()
        yield
        close()
