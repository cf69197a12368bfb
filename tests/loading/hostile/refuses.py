"""Raises KeyboardInterrupt in a hook, in the midst of its list."""

from standards_mcp import Plugin, Tool, hookimpl


class RefusesPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        yield Tool(name="refuse", description="Refuse.", function=lambda: "done")
        raise KeyboardInterrupt
