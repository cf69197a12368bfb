"""Has a filter whose type and whose function raise what ends programs."""

from typing import Annotated

from pydantic import BeforeValidator

from standards_mcp import Filter, FilterExpression, Plugin, hookimpl, tool


def fail(value):
    raise KeyboardInterrupt


class FiltersPlugin(Plugin):
    @hookimpl
    def register_filters(self):
        odd = Annotated[str, BeforeValidator(fail)]
        yield Filter(name="odd", annotation=odd, description="Odd.", to_expression=fail)
        yield Filter(name="even", annotation=str, description="Even.", to_expression=fail)

    @tool(accepts_filters=True)
    def sieve(self, filter: FilterExpression | None = None) -> str:  # noqa: A002
        """Sieve."""
        return "done"
