"""Keeps memory at every call, and gives none back."""

from standards_mcp import Plugin, Tool, hookimpl


class LeaksPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        kept = []

        def leak(megabytes: int = 10) -> int:
            kept.append(bytearray(megabytes << 20))
            return sum(map(len, kept)) >> 20

        return [Tool(name="leak", description="Leak.", function=leak)]
