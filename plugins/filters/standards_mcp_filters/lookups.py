"""The filters whose texts are looked up in the catalog, by their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from standards_mcp import FilterExpression
from standards_mcp_catalog import Catalog

from .codes import core_idea_filter, prefix_filter
from .values import jurisdiction_filter, named_value_filter, set_filter

LOOKUPS: Final[Mapping[str, Callable[[Catalog, str], Awaitable[FilterExpression]]]] = {
    "standard_set_id": set_filter,
    "jurisdiction": jurisdiction_filter,
    "statement_label": partial(named_value_filter, "statement_label"),
    "publication_status": partial(named_value_filter, "publication_status"),
    "notation_prefix": prefix_filter,
    "core_idea": core_idea_filter,
}
