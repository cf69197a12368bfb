"""Has half a character in its instructions."""

from standards_mcp import Plugin, tool


class InstructsPlugin(Plugin):
    instructions = "Call instruct, half \ud83d."

    @tool
    def instruct(self) -> str:
        """Instruct."""
        return "done"
