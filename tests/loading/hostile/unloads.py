"""Takes modules of the standard library and of the host away at import."""

import sys

from standards_mcp import Plugin, tool

for name in ("json", "logging", "asyncio", "contextlib", "standards_mcp", "standards_mcp.host"):
    sys.modules.pop(name, None)
sys.modules["traceback"] = None


class UnloadsPlugin(Plugin):
    @tool
    def unload(self) -> str:
        """Unload."""
        return "done"
