"""Raises exceptions that cannot be printed, and groups and chains without end."""

from standards_mcp import Plugin, ToolError, tool


class Mute:
    def __str__(self):
        raise KeyboardInterrupt

    __repr__ = __str__


class MuteError(Exception):
    def __str__(self):
        raise SystemExit


class MumblesPlugin(Plugin):
    @tool
    def mumble(self) -> str:
        """Mumble."""
        raise SystemExit(Mute())

    @tool
    async def mumble_error(self) -> str:
        """Mumble."""
        raise ToolError(Mute(), details={"a": Mute()})

    @tool
    async def mumble_value(self) -> str:
        """Mumble."""
        raise ValueError(Mute())

    @tool
    async def mumble_group(self) -> str:
        """Mumble."""
        group = MuteError()
        for _ in range(5000):
            group = ExceptionGroup("deeper", [group])
        raise group

    @tool
    async def mumble_chain(self) -> str:
        """Mumble."""
        error = MuteError()
        for _ in range(5000):
            cause, error = error, MuteError()
            error.__cause__ = cause
        raise error
