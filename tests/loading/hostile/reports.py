"""Reports its progress 10,000 times in a call, from the loop and from a thread."""

from standards_mcp import CallContext, Plugin, tool


class ReportsPlugin(Plugin):
    @tool
    async def report(self, context: CallContext) -> str:
        """Report."""
        for number in range(10_000):
            await context.report_progress(number, 10_000, "x" * 100)
        return "done"
