"""Contributes something else each time that it is asked, and says so."""

import itertools

from standards_mcp import Plugin, Tool, hookimpl


class WaversPlugin(Plugin):
    numbers = itertools.count()

    @hookimpl
    def register_tools(self):
        number = next(self.numbers)

        def waver() -> str:
            self.context.contributions_changed()
            return "done"

        self.context.contributions_changed()
        if number % 3 == 2:
            raise KeyboardInterrupt
        yield Tool(name="waver", description=f"Waver {number}.", function=waver)
