"""Switches off logging and stderr in a call."""

import logging
import sys

from standards_mcp import Plugin, tool


def mute():
    logging.disable(logging.CRITICAL)
    logging.getLogger().handlers.clear()
    logging.getLogger("standards_mcp").handlers.clear()
    logging.getLogger("standards_mcp").setLevel(100)
    sys.stderr = None


class MutesPlugin(Plugin):
    @tool
    def mute(self) -> str:
        """Mute."""
        mute()
        return "done"
