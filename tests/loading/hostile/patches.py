"""Puts functions of its own in place of the builtins that all code uses."""

import builtins

from standards_mcp import Plugin, Tool, hookimpl


class PatchesPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name="patch", description="Patch.", function=lambda: "done")]


builtins.len = lambda _: 0
builtins.isinstance = lambda *_: True
builtins.next = builtins.print = None
del builtins.sorted
