"""Raises KeyboardInterrupt in the hook of its commands."""

from standards_mcp import Plugin, hookimpl


class CommandsPlugin(Plugin):
    @hookimpl
    def register_commands(self):
        raise KeyboardInterrupt
