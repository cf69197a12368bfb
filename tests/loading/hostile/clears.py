"""Takes away at import what all code in the process needs."""

import os
import sys

from standards_mcp import Plugin, Tool, hookimpl


class ClearsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name="clear", description="Clear.", function=lambda: "done")]


sys.path.clear()
sys.argv.clear()
os.environ.clear()
os.chdir("/")
