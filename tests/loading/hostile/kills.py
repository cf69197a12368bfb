"""Kills its own process."""

import os
import signal

from standards_mcp import Plugin, tool


class KillsPlugin(Plugin):
    @tool
    def kill(self) -> str:
        """Kill."""
        os.kill(os.getpid(), signal.SIGKILL)
        return "done"
