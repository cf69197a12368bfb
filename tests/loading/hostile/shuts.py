"""Closes all file descriptors but those of the standard streams."""

import os

from standards_mcp import Plugin, tool


class ShutsPlugin(Plugin):
    @tool
    def shut(self) -> str:
        """Shut."""
        os.closerange(3, 256)
        return "done"
