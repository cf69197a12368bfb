"""Forks, and lets the child go on as if it were the server."""

import os

from standards_mcp import Plugin, tool


class ForksPlugin(Plugin):
    @tool
    async def fork(self) -> str:
        """Fork."""
        os.fork()
        return "done"
