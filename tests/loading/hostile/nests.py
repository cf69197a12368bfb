"""Answers what is nested without an end."""

from standards_mcp import Plugin, ToolResult, resource, tool


def nested():
    found = []
    found.append(found)
    return found


def deep():
    found = "deep"
    for _ in range(100_000):
        found = [found]
    return found


class NestsPlugin(Plugin):
    @tool
    def nest(self):
        """Nest."""
        return nested()

    @tool
    def nest_deeply(self):
        """Nest."""
        return deep()

    @tool
    async def nest_parts(self) -> ToolResult:
        """Nest."""
        return ToolResult(text="a", structured={"a": deep()})

    @resource("nests://thing")
    def nest_resource(self):
        """Nest."""
        return nested()
