"""The plugin: names, descriptions and types of its filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from standards_mcp import (
    Filter,
    FilterExpression,
    Plugin,
    ToolCall,
    ToolHandler,
    ToolResult,
    hookimpl,
)
from standards_mcp_catalog import Catalog

SEARCH: Final = "find_relevant_standards"

IS_LEAF: Final = (
    "true: only standards that are not divided further, the smallest to teach and assess. false: "
    "only headings and standards with parts."
)
DEPTH: Final = (
    "The number of headings above, 0 for the top of a framework. Frameworks use levels differently."
)
GRADE_RANGE: Final = (
    "Grades from one to another: '3-5', 'K-2', '9-12'. With 'within' also so many grades below and "
    "above: '4 within 1' is 3 to 5."
)
STANDARD_SET_ID: Final = (
    "One set of standards, by the standard_set_id of get_standard_details or the "
    "standard_set_title of a result."
)
JURISDICTION: Final = (
    "Whose standards, by name or id: a state such as 'Texas' or 'TX', or 'Common Core' or 'CCSS'."
)
STATEMENT_LABEL: Final = "The kind of statement, such as 'Standard', 'Cluster' or 'Domain'."
PUBLICATION_STATUS: Final = "State of the document, such as 'Published', 'Draft' or 'Deprecated'."
NOTATION_PREFIX: Final = (
    "The beginning of the code, in any spelling: '3.NF', '3.NF.A', 'RL.3', 'HSF-LE', '5-PS1'. A "
    "whole code selects that standard and its parts."
)
CORE_IDEA: Final = (
    "A core idea of the NGSS in all grades: 'PS1', 'LS2', or a title such as 'energy'."
)


def _as_text(value: object) -> object:
    """Return 4 and 4.0 as "4": models give a single grade as a number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_as_text)]
Depth = Annotated[int, Field(ge=0)]


class FiltersPlugin(Plugin):
    """Contributes nine filters to every tool that accepts filters, and explains empty results."""

    needs = (Catalog,)

    @hookimpl
    def register_filters(self) -> Iterable[Filter]:
        """Return the filters."""
        return self._filters()

    @hookimpl
    def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
        """Return a handler that adds a note on the filters to a search without a result."""
        filters = self._filters()

        async def answer(call: ToolCall) -> ToolResult:
            result = await call_next(call)
            if call.tool != SEARCH or (result.structured or {}).get("error_type") != "no_results":
                return result
            from .advice import advice_on

            advice = await advice_on(self.context.service(Catalog), filters, call.arguments)
            return replace(result, notes=(*result.notes, advice)) if advice else result

        return answer

    def _filters(self) -> list[Filter]:
        return [
            _filter("is_leaf", bool, IS_LEAF, lambda value: {"is_leaf": value}),
            _filter("depth", Depth, DEPTH, lambda value: {"depth": value}),
            _filter("grade_range", Text, GRADE_RANGE, _grade_filter),
            self._lookup_filter("standard_set_id", STANDARD_SET_ID),
            self._lookup_filter("jurisdiction", JURISDICTION),
            self._lookup_filter("statement_label", STATEMENT_LABEL),
            self._lookup_filter("publication_status", PUBLICATION_STATUS),
            self._lookup_filter("notation_prefix", NOTATION_PREFIX),
            self._lookup_filter("core_idea", CORE_IDEA),
        ]

    def _lookup_filter(self, name: str, description: str) -> Filter:
        """Return a filter by a text that `lookups` looks up in the catalog."""

        async def to_expression(text: str) -> FilterExpression | None:
            from .lookups import LOOKUPS

            if not text.strip():
                return None
            return await LOOKUPS[name](self.context.service(Catalog), text)

        return _filter(name, Text, description, to_expression)


def _grade_filter(text: str) -> FilterExpression | None:
    from .grades import grade_filter

    return grade_filter(text)


def _filter(
    name: str, annotation: Any, description: str, to_expression: Callable[[Any], Any]
) -> Filter:
    return Filter(
        name=name, annotation=annotation, description=description, to_expression=to_expression
    )
