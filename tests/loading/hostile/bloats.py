"""Describes its arguments at a length that fills any model's context."""

from standards_mcp import Plugin, Tool, hookimpl


class BloatsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        properties = {
            f"argument_{number}": {"type": "string", "description": "x" * 1000}
            for number in range(20_000)
        }
        schema = {"type": "object", "properties": properties}
        return [
            Tool(
                name="bloat", description="Bloat.", function=lambda **_: "done", input_schema=schema
            )
        ]
