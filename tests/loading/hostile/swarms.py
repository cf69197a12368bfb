"""Registers ten thousand tools."""

from standards_mcp import Plugin, Tool, hookimpl


class SwarmsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        def one_of_many(text: str = "") -> str:
            return text

        for number in range(10_000):
            yield Tool(name=f"tool_{number}", description="One of many.", function=one_of_many)
