"""Registers filters without an end."""

import itertools

from standards_mcp import Filter, Plugin, hookimpl


class SiftsPlugin(Plugin):
    @hookimpl
    def register_filters(self):
        for n in itertools.count():
            yield Filter(name=f"f{n}", annotation=str, description="One.", to_expression=str)
