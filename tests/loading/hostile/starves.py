"""Leaves the process no file descriptors."""

import resource

from standards_mcp import Plugin, tool


class StarvesPlugin(Plugin):
    @tool
    def starve(self) -> str:
        """Starve."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        return "done"
