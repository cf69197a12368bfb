"""Says that it needs a host that does not exist."""

from standards_mcp import Plugin


class OutgrowsPlugin(Plugin):
    pass
