"""Raises whatever it can wherever the host calls it."""

from standards_mcp import Plugin, Tool, hookimpl


class Unspeakable(BaseException):
    def __str__(self):
        raise self


class RaisesPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        def explode() -> str:
            raise Unspeakable

        return [Tool(name="explode", description="Explode.", function=explode)]

    @hookimpl
    def wrap_tool_call(self, call_next):
        async def handle(call):
            raise Unspeakable

        return handle
