"""Computes in its thread for ever, and never lets go."""

from standards_mcp import Plugin, tool


class SpinsPlugin(Plugin):
    @tool(timeout=0.1)
    def spin(self) -> str:
        """Spin."""
        while True:
            pass
