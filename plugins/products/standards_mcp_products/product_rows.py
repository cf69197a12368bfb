"""Convert rows of a file to products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from typing_extensions import TypedDict

from . import values
from .columns import FEATURES, STANDARD, Columns
from .files import Row

Fields: TypeAlias = dict[str, str | float | bool]

_NEARLY_ALL: Final = 0.9
_LONGEST_SHOWN: Final = 100


class Skipped(TypedDict):
    """A skipped row."""

    row: int
    reason: str


class Unread(TypedDict):
    """Values of a field that are not numbers: their count, and the first one with its row."""

    count: int
    row: int
    value: str


@dataclass(frozen=True, slots=True)
class Product:
    """The stored data of a product.

    Attributes:
        document: The embedded text.
        fields: The known fields, for filters.
    """

    document: str
    fields: Fields


@dataclass(slots=True)
class Products:
    """The products of a file.

    Attributes:
        columns: The source columns.
        read: Number of rows.
        by_id: The products by their ids.
        skipped: The skipped rows.
        unread: Unreadable values by field.
    """

    columns: Columns
    read: int = 0
    by_id: dict[str, Product] = field(default_factory=dict[str, Product])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    unread: dict[str, Unread] = field(default_factory=dict[str, Unread])


def read_products(
    read_rows: Callable[[], Iterable[Row]], columns: Columns, delimiter: str
) -> Products:
    """Convert the rows of a file to products. The last row of several with one id counts.

    Args:
        read_rows: Reads the rows; all of them are needed to find the ids and to read prices.
        delimiter: The character between the cells of a CSV file.
    """
    columns = _identified(read_rows(), columns)
    prices = (columns.value("price", row) for row in read_rows() if isinstance(row, Mapping))
    notation = values.notation(prices, delimiter)
    products, places = Products(columns), dict[str, int]()
    for number, row in enumerate(read_rows(), 1):
        products.read = number
        outcome = row if isinstance(row, str) else _product(row, columns, notation)
        if isinstance(outcome, str):
            products.skipped.append({"row": number, "reason": outcome})
            continue
        doc_id, product, unread = outcome
        if doc_id in places:
            reason = f"row {number} has the same id"
            products.skipped.append({"row": places[doc_id], "reason": reason})
        places[doc_id] = number
        products.by_id[doc_id] = product
        for name, value in unread.items():
            first: Unread = {"count": 0, "row": number, "value": value[:_LONGEST_SHOWN]}
            products.unread.setdefault(name, first)["count"] += 1
    products.skipped.sort(key=lambda skipped_row: skipped_row["row"])
    return products


def _identified(rows: Iterable[Row], columns: Columns) -> Columns:
    """Choose one id column, because ids of two columns may be equal by chance.

    The first column with nearly as many distinct ids as the best one is chosen.
    """
    candidates = columns.mapping.get("sku", [])
    if not candidates[1:]:
        return columns
    ids: dict[str, set[str | None]] = {column: {None} for column in candidates}
    for row in rows:
        if isinstance(row, Mapping) and columns.value("title", row) is not None:
            for column in candidates:
                ids[column].add(values.text(row.get(column)))
    most = max(len(distinct) - 1 for distinct in ids.values())
    chosen = (column for column in candidates if len(ids[column]) - 1 >= _NEARLY_ALL * most)
    return columns.identified_by(next(chosen))


def _product(
    row: Mapping[str, Any], columns: Columns, notation: values.Notation
) -> tuple[str, Product, dict[str, str]] | str:
    """Return the id, product and unread values of a row, or the reason to skip it."""
    further = [name for name in columns.mapping if name not in STANDARD]
    cells = {name: columns.value(name, row) for name in (*STANDARD, *further)}
    sku, brand, ingredients = (values.text(cells[name]) for name in ("sku", "brand", "ingredients"))
    # Exports of shops have HTML in these.
    read_text = values.text if columns.is_export else values.without_tags
    title, features, category = (read_text(cells[name]) for name in ("title", FEATURES, "category"))
    for name, value in (("sku", sku), ("title", title)):
        if value is None:
            return f"has no {' or '.join(map(repr, columns.mapping[name]))}"
    price = values.price(cells["price"], notation)
    numbers = {"price": price, "rating": values.rating(cells["rating"])}
    fields: dict[str, str | float | bool | None] = {
        "sku": sku,
        "title": title,
        "category": category,
        "brand": brand,
        **numbers,
        "ingredients": ingredients,
        "price_per_oz": _per_ounce(price, values.ounces([title, features])),
        **{name: values.plain(cells[name]) for name in further},
    }
    known_fields = {name: value for name, value in fields.items() if value is not None}
    document = " ".join(part for part in (title, features, category) if part)
    unread = {
        name: str(cells[name])
        for name, number in numbers.items()
        if number is None and cells[name] is not None
    }
    return str(sku), Product(document, known_fields), unread


def _per_ounce(price: float | None, ounces: float | None) -> float | None:
    quotient = price / ounces if price and ounces else 0
    return quotient if 0 < quotient < math.inf else None
