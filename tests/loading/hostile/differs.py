"""Can neither be compared nor be printed, and is false."""

from standards_mcp import Plugin, tool


def fail(*_):
    raise KeyboardInterrupt("never")


class DiffersPlugin(Plugin):
    __eq__ = __ne__ = __str__ = __repr__ = __bool__ = __len__ = __hash__ = fail

    @tool
    def differ(self) -> str:
        """Differ."""
        return "done"
