"""Leaves no room for recursion at import."""

import sys

from standards_mcp import Plugin, tool

sys.setrecursionlimit(60)


class LimitsPlugin(Plugin):
    @tool
    def limit(self) -> str:
        """Limit."""
        return "done"
