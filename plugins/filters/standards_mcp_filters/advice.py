"""What to tell of the filters after a search that found nothing."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from standards_mcp import Filter, FilterExpression, ServiceError, ToolError
from standards_mcp.filters import combine, matches, parse_filter
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.vocabulary.notation import with_prefixes

SECONDS: Final = 2.0
"""How long the advice may take; the answer is there already and waits for it."""
_MOST_HITS: Final = 50
_LONGEST_QUOTE: Final = 60
_NARROWING: Final = ("grade", "subject")


async def advice_on(
    catalog: Catalog, filters: Iterable[Filter], arguments: Mapping[str, Any]
) -> str:
    """Return which of *filters* are in force, and any that keeps matches away by itself.

    The latter takes one search, and is left out where a grade or a subject narrows the search too:
    what to do about these, the answer says itself.

    Args:
        arguments: Those of a search that found nothing.

    Returns:
        Full sentences, or an empty text where none of the filters was given.
    """
    given = [each for each in filters if _is_given(arguments.get(each.name))]
    if not given:
        return ""
    named = ", ".join(f"{each.name} = {_quoted(arguments[each.name])}" for each in given)
    hindering: list[str] = []
    if not any(arguments.get(name) for name in _NARROWING):
        try:
            async with asyncio.timeout(SECONDS):
                hindering = await _hindering(catalog, given, arguments)
        except (ServiceError, ToolError, TimeoutError):
            pass  # the advice is shorter then
    advice = f"Try without {', or without '.join(hindering)}" if hindering else "Leave some out"
    return f"Filters in force: {named}. {advice}."


async def _hindering(
    catalog: Catalog, filters: Iterable[Filter], arguments: Mapping[str, Any]
) -> list[str]:
    """Return the names of the filters each of which, left out alone, would let matches through."""
    expressions = {each.name: await _expression(each, arguments[each.name]) for each in filters}
    others = {
        left_out: combine(*(each for name, each in expressions.items() if name != left_out))
        for left_out in expressions
    }
    limits = [limit for limit in others.values() if limit]
    either: FilterExpression | None = {"$or": limits} if len(limits) == len(others) else None
    hits = (await catalog.search(str(arguments.get("activity", "")), _MOST_HITS, either)).hits
    records = [record for hit in hits for record in (hit.record, *hit.also_in)]
    found = [with_prefixes(record.to_dict()) for record in records]
    parsed = {name: parse_filter(limit) for name, limit in others.items()}
    return [name for name, node in parsed.items() if any(matches(node, each) for each in found)]


def _is_given(value: object) -> bool:
    return value is not None and bool(str(value).strip())


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


async def _expression(item: Filter, value: object) -> FilterExpression | None:
    found = item.to_expression(TypeAdapter[Any](item.annotation).validate_python(value))
    return await found if inspect.isawaitable(found) else found
