"""Has half a character in the description of a tool."""

from standards_mcp import Plugin, Tool, hookimpl


class HalvesPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [Tool(name="halve", description="half \ud83d", function=lambda: "done")]
