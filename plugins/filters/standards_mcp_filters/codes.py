"""Make filters of the beginning of a code, in any spelling, and of a core idea in codes."""

from __future__ import annotations

import difflib
from typing import Final

from standards_mcp import FilterExpression, InvalidInputError
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.vocabulary.core_ideas import (
    CORE_IDEAS,
    code_prefixes,
    ideas_named,
    titled,
)
from standards_mcp_catalog.vocabulary.names import quoted
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key

_MAX_SUGGESTIONS: Final = 3
_MAX_LENGTH: Final = 512


async def prefix_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the codes that begin with *text*, and for that code itself.

    Raises:
        InvalidInputError: No code begins with *text*; the message names the nearest beginnings.
        CatalogError: The catalog cannot be read.
    """
    key = canonical_key(text[:_MAX_LENGTH])
    values = await catalog.values(PREFIXES_FIELD)
    if key and (key in values.counts or not values.complete):
        return {PREFIXES_FIELD: key}
    if not values.counts:
        raise InvalidInputError(
            "The standards here cannot be filtered by code. Leave it out; an index in Pinecone "
            "learns it from `standards-mcp data upload`."
        )
    close = difflib.get_close_matches(key, values.counts, _MAX_SUGGESTIONS)
    hint = f"The nearest are {', '.join(close)}." if close else "Give '3.NF' or 'RL.3', say."
    raise InvalidInputError(f"No code here begins with {quoted(text)}. {hint}")


async def core_idea_filter(catalog: Catalog, text: str) -> FilterExpression:
    """Return the filter for the standards of a core idea of the NGSS, by its code or title.

    Raises:
        InvalidInputError: No core idea has this code or title, or its standards are not loaded.
        CatalogError: The catalog cannot be read.
    """
    ideas = ideas_named(text)
    if not ideas:
        names = "; ".join(map(titled, CORE_IDEAS))
        raise InvalidInputError(f"No core idea is called {quoted(text)}. There are: {names}.")
    keys = [key for idea in ideas for key in code_prefixes(idea)]
    values = await catalog.values(PREFIXES_FIELD)
    if values.complete and not any(key in values.counts for key in keys):
        names = ", ".join(map(titled, ideas))
        raise InvalidInputError(f"No standard here belongs to {names}. Leave core_idea out.")
    return {PREFIXES_FIELD: {"$in": keys}}
