"""Raises a group with KeyboardInterrupt when it is stopped."""

import contextlib

from standards_mcp import Plugin, hookimpl, tool


class StopsPlugin(Plugin):
    @tool
    def stop(self) -> str:
        """Stop."""
        return "done"

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        yield
        raise BaseExceptionGroup("stopped", [KeyboardInterrupt(), SystemExit()])
