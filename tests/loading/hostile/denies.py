"""Calls sys.exit in the hook of its filters, after its tools were taken."""

import sys

from standards_mcp import Plugin, hookimpl, tool


class DeniesPlugin(Plugin):
    @tool
    def deny(self) -> str:
        """Deny."""
        return "done"

    @hookimpl
    def register_filters(self):
        sys.exit("no filters")
