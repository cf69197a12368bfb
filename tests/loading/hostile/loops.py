"""Has a lifespan that is a plain function, and one that yields twice."""

import contextlib

from standards_mcp import Plugin, hookimpl, tool


class LoopsPlugin(Plugin):
    @tool
    def loop(self) -> str:
        """Loop."""
        return "done"

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        while True:
            with contextlib.suppress(BaseException):
                yield
