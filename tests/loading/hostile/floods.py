"""Answers 20 MB of text."""

from standards_mcp import Plugin, prompt, resource, tool


class FloodsPlugin(Plugin):
    @tool
    def flood(self) -> str:
        """Flood."""
        return "word " * 4_000_000

    @prompt
    def flood_prompt(self) -> str:
        """Flood."""
        return "word " * 4_000_000

    @resource("floods://thing")
    def flood_resource(self) -> bytes:
        """Flood."""
        return bytes(20_000_000)
