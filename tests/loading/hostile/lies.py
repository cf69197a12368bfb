"""Says by its metadata that it fits this host, and needs what no host has."""

from standards_mcp import Plugin, TimeMachine  # noqa: F401


class LiesPlugin(Plugin):
    pass
