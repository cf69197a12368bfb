"""Raises at every access of an attribute that its class does not have."""

from standards_mcp import Plugin, tool


class HidesPlugin(Plugin):
    def __getattr__(self, name):
        raise KeyboardInterrupt(name)

    @property
    def secret(self):
        raise SystemExit("a property")

    @tool
    def hide(self) -> str:
        """Hide."""
        return "done"
