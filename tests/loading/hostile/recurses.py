"""Describes its argument by a schema that doubles with every reference it follows."""

from standards_mcp import Plugin, Tool, hookimpl

LEVELS = 40


class RecursesPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        definitions = {
            f"level_{number}": {
                "type": "object",
                "properties": {
                    side: {"$ref": f"#/$defs/level_{number + 1}"} for side in ("left", "right")
                },
            }
            for number in range(LEVELS)
        }
        definitions[f"level_{LEVELS}"] = {"type": "string"}
        schema = {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/level_0"}},
            "$defs": definitions,
        }
        return [
            Tool(
                name="recurse",
                description="Recurse.",
                function=lambda **_: "done",
                input_schema=schema,
            )
        ]
