"""Explain which filters were in force in a search without a result."""

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
"""Time limit for the advice, because the answer waits for it."""
_MOST_HITS: Final = 50
_LONGEST_QUOTE: Final = 60
_NARROWING: Final = ("grade", "subject")


async def advice_on(
    catalog: Catalog, filters: Iterable[Filter], arguments: Mapping[str, Any]
) -> str:
    """Name the filters in force, and each filter that excludes all matches by itself.

    One search finds the excluding filters. It is skipped if a grade or a subject narrows the
    search, because the answer already has advice on these.

    Args:
        arguments: The arguments of a search without a result.

    Returns:
        Full sentences, or an empty string if no filter was in force.
    """
    in_force = [item for item in filters if _has_value(arguments.get(item.name))]
    if not in_force:
        return ""
    listed_filters = ", ".join(
        f"{item.name} = {_quoted(arguments[item.name])}" for item in in_force
    )
    excluding: list[str] = []
    if not any(arguments.get(name) for name in _NARROWING):
        try:
            async with asyncio.timeout(SECONDS):
                excluding = await _excluding_filters(catalog, in_force, arguments)
        except (ServiceError, ToolError, TimeoutError):
            pass  # the advice is shorter then
    advice = f"Try without {', or without '.join(excluding)}" if excluding else "Leave some out"
    return f"Filters in force: {listed_filters}. {advice}."


async def _excluding_filters(
    catalog: Catalog, filters: Iterable[Filter], arguments: Mapping[str, Any]
) -> list[str]:
    """Return the names of filters without which the search would have matches."""
    expressions = {item.name: await _expression(item, arguments[item.name]) for item in filters}
    others = {
        left_out: combine(*(limit for name, limit in expressions.items() if name != left_out))
        for left_out in expressions
    }
    limits = [limit for limit in others.values() if limit]
    either: FilterExpression | None = {"$or": limits} if len(limits) == len(others) else None
    hits = (await catalog.search(str(arguments.get("activity", "")), _MOST_HITS, either)).hits
    records = [record for hit in hits for record in (hit.record, *hit.also_in)]
    fields = [with_prefixes(record.to_dict()) for record in records]
    parsed = {name: parse_filter(limit) for name, limit in others.items()}
    return [name for name, node in parsed.items() if any(matches(node, item) for item in fields)]


def _has_value(value: object) -> bool:
    return value is not None and bool(str(value).strip())


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


async def _expression(item: Filter, value: object) -> FilterExpression | None:
    expression = item.to_expression(TypeAdapter[Any](item.annotation).validate_python(value))
    return await expression if inspect.isawaitable(expression) else expression
