"""Changes later what it has declared: schema, default, meta and instructions."""

from standards_mcp import Plugin, Tool, hookimpl


class AltersPlugin(Plugin):
    instructions = "Call alter."

    @hookimpl
    def register_tools(self):
        default, meta = ["a"], {"b": ["c"]}
        schema = {
            "type": "object",
            "properties": {"d": {"type": "array", "default": default, "items": {}}},
        }

        def alter(**_) -> str:
            default.append(object())
            meta["b"].append("half \ud83d")
            schema["properties"] = object()
            AltersPlugin.instructions = self.instructions = object()
            return "done"

        yield Tool(
            name="alter", description="Alter.", function=alter, input_schema=schema, meta=meta
        )
