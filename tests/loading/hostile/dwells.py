"""Runs in its thread until long after its call was given up."""

import time

from standards_mcp import Plugin, tool


class DwellsPlugin(Plugin):
    @tool(timeout=0.1)
    def dwell(self) -> str:
        """Dwell."""
        time.sleep(2)
        return "done"
