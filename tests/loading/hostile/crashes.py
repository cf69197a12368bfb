"""Reads memory that is not its own."""

import ctypes

from standards_mcp import Plugin, tool


class CrashesPlugin(Plugin):
    @tool
    def crash_hard(self) -> str:
        """Crash."""
        ctypes.string_at(0)
        return "done"
