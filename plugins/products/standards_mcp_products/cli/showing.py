"""How answers look to people, and the options that commands have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from standards_mcp import InvalidInputError
from standards_mcp_products.building import shown

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
    lines += _mapping(built)
    skipped = built["skipped"]
    lines += [
        f"Row {each['row']} is skipped: {each['reason']}." for each in skipped[:_MOST_SKIPPED]
    ]
    if len(skipped) > _MOST_SKIPPED:
        lines.append(f"{len(skipped) - _MOST_SKIPPED:,} more are skipped; --json has all.")
    lines += [
        f"Values of {name} that could not be read: {each['count']:,}, the first {each['value']!r} "
        f"in row {each['row']}. The {name} of these products is unknown."
        for name, each in built["unread"].items()
    ]
    return "\n".join(lines)


def _mapping(built: Mapping[str, Any]) -> list[str]:
    """Return which columns fields come from, and which are not used."""
    mapping: Mapping[str, Sequence[str]] = built["mapping"]
    unused: Sequence[str] = built["unused"]
    doubtful: Mapping[str, Sequence[str]] = built["doubtful"]
    used = [f"{name} from {' or '.join(columns)}" for name, columns in mapping.items() if columns]
    missing = [name for name, columns in mapping.items() if not columns]
    lines = [f"Columns: {', '.join(used)}."]
    if missing:
        lines.append(f"The file has no column that the mapping names for {shown(missing)}.")
    lines += [
        f"The columns {' and '.join(map(repr, columns))} could each be the {name}; the first is "
        "used. A mapping can name another."
        for name, columns in doubtful.items()
    ]
    if unused:
        lines.append(f"Columns that are not used: {shown(unused)}. A mapping can add them.")
    return lines


def _product(rank: int, found: Mapping[str, Any]) -> str:
    price = "price not known" if found["price"] is None else f"${found['price']:,.2f}"
    rating = None if found["rating"] is None else f"{found['rating']:g} of 5"
    about = ", ".join(each for each in (price, rating, found["brand"], found["sku"]) if each)
    return f"{rank}. {found['title']}\n   {about}"
