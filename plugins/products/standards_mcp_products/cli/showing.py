"""How answers look to people, and the options that commands have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from standards_mcp import InvalidInputError

_MOST_SKIPPED: Final = 20


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--filters``."""
    about = """Such as '{"price": {"$lte": 15}}'."""
    return click.option("--filters", "text", metavar="JSON", help=about)(command)


def read_filters(text: str | None) -> dict[str, Any] | None:
    """Return the value of ``--filters``.

    Raises:
        InvalidInputError: It is no JSON object.
    """
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"--filters is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInputError("--filters must be a JSON object.")
    return found  # pyright: ignore[reportUnknownVariableType]


def products(results: Sequence[Mapping[str, Any]]) -> str:
    """Return what people read of results."""
    shown = [_product(rank, each) for rank, each in enumerate(results, 1)]
    return "\n\n".join(shown) or "Nothing was found."


def report(built: Mapping[str, Any], *, dry_run: bool = False) -> str:
    """Return what people read of a build."""
    counts = ", ".join(f"{built[each]:,} {each}" for each in ("indexed", "unchanged", "removed"))
    verb = "would be" if dry_run else "is"
    lines = [f"{built['collection']} {verb} built of {built['read']:,} rows: {counts}."]
    skipped = built["skipped"]
    lines += [
        f"Row {each['row']} is skipped: {each['reason']}." for each in skipped[:_MOST_SKIPPED]
    ]
    if len(skipped) > _MOST_SKIPPED:
        lines.append(f"{len(skipped) - _MOST_SKIPPED:,} more are skipped; --json has all.")
    return "\n".join(lines)


def _product(rank: int, found: Mapping[str, Any]) -> str:
    price = "price not known" if found["price"] is None else f"${found['price']:,.2f}"
    rating = None if found["rating"] is None else f"{found['rating']:g} of 5"
    about = ", ".join(each for each in (price, rating, found["brand"], found["sku"]) if each)
    return f"{rank}. {found['title']}\n   {about}"
