"""``standards-mcp data``: load, look at and upload standards."""

from .commands import data_commands

__all__ = ["data_commands"]
