"""Raises what ends programs in its wrapper of all calls, by turns."""

import itertools

from standards_mcp import Plugin, hookimpl


class MeddlesPlugin(Plugin):
    @hookimpl
    def wrap_tool_call(self, call_next):
        kinds = itertools.cycle([KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration])

        async def handle(call):
            raise next(kinds)

        return handle
