"""Turns warnings into errors, and warns."""

import warnings

from standards_mcp import Plugin, tool

warnings.simplefilter("error")


class WarnsPlugin(Plugin):
    @tool
    def warn(self) -> str:
        """Warn."""
        warnings.simplefilter("error")
        warnings.warn("odd", DeprecationWarning, stacklevel=2)
        return "done"
