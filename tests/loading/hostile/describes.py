"""Has half a character in the description of a filter and in its choices."""

from typing import Literal

from standards_mcp import Filter, Plugin, hookimpl


class DescribesPlugin(Plugin):
    @hookimpl
    def register_filters(self):
        kind = Literal["half \ud83d"]
        yield Filter(name="half", annotation=kind, description="\ud83d", to_expression=id)
