"""Answers what cannot be awaited, or what yields to the loop without an end."""

from standards_mcp import Plugin, tool


class Odd:
    def __await__(self):
        yield "not a future"


class Endless:
    def __await__(self):
        while True:
            yield


class AwaitsPlugin(Plugin):
    @tool
    def wait(self) -> str:
        """Wait."""
        return Odd()

    @tool(timeout=0.2)
    async def wait_endlessly(self) -> str:
        """Wait."""
        return await Endless()
