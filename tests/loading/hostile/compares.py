"""Is equal to everything, and has no hash."""

from standards_mcp import Plugin, tool


class ComparesPlugin(Plugin):
    def __eq__(self, other):
        return True

    def __hash__(self):
        raise RuntimeError("no hash")

    @tool
    def compare(self) -> str:
        """Compare."""
        return "done"
