"""Puts a finder first that breaks every import after its own."""

import sys

from standards_mcp import Plugin, tool


class Finder:
    def find_spec(self, name, path=None, target=None):
        raise ImportError(name)


sys.meta_path.insert(0, Finder())


class ImpersonatesPlugin(Plugin):
    @tool
    def impersonate(self) -> str:
        """Impersonate."""
        return "done"
