"""Registers a function for the end of the process that never returns."""

import atexit
import time

from standards_mcp import Plugin, tool


def delay():
    while True:
        time.sleep(3600)


atexit.register(delay)


class DelaysPlugin(Plugin):
    @tool
    def delay(self) -> str:
        """Delay."""
        return "done"
