"""Makes products of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from typing_extensions import TypedDict

from . import values
from .columns import FEATURES, Columns
from .files import Row, Unreadable

Fields: TypeAlias = dict[str, str | float | bool]

_NEARLY_ALL: Final = 0.9
_LONGEST_SHOWN: Final = 100


class Skipped(TypedDict):
    """A row that has become no product."""

    row: int
    reason: str


class Unread(TypedDict):
    """The values of a field that could not be read as its numbers.

    `row` and `value` are those of the first one.
    """

    count: int
    row: int
    value: str


@dataclass(frozen=True, slots=True)
class Product:
    """What is stored of a product.

    Attributes:
        document: The text that is embedded.
        fields: What filters may ask for. What is not known is not there.
    """

    document: str
    fields: Fields


@dataclass(slots=True)
class Products:
    """The products of a file.

    Attributes:
        columns: The columns that they come from.
        read: How many rows it has.
        found: The products by their ids.
        skipped: The rows that are no product.
        unread: The values of products that could not be read, by their fields.
    """

    columns: Columns
    read: int = 0
    found: dict[str, Product] = field(default_factory=dict[str, Product])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    unread: dict[str, Unread] = field(default_factory=dict[str, Unread])


def read_products(
    read_rows: Callable[[], Iterable[Row]], columns: Columns, delimiter: str
) -> Products:
    """Return the products of a file. The last of equal ids counts.

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
        found = row.reason if isinstance(row, Unreadable) else _product(row, columns, notation)
        if isinstance(found, str):
            products.skipped.append({"row": number, "reason": found})
            continue
        doc_id, product, unread = found
        if doc_id in places:
            reason = f"row {number} has the same id"
            products.skipped.append({"row": places[doc_id], "reason": reason})
        places[doc_id] = number
        products.found[doc_id] = product
        for name, value in unread.items():
            first: Unread = {"count": 0, "row": number, "value": value[:_LONGEST_SHOWN]}
            products.unread.setdefault(name, first)["count"] += 1
    products.skipped.sort(key=lambda each: each["row"])
    return products


def _identified(rows: Iterable[Row], columns: Columns) -> Columns:
    """Return the columns with one for the ids, as ids of two columns may be equal by chance.

    That is the first column that gives nearly as many products as the one that gives the most.
    """
    candidates = columns.known["sku"]
    if not candidates[1:]:
        return columns
    ids: dict[str, set[str | None]] = {column: {None} for column in candidates}
    for row in rows:
        if isinstance(row, Mapping) and columns.value("title", row) is not None:
            for column in candidates:
                ids[column].add(values.text(row.get(column)))
    most = max(len(found) - 1 for found in ids.values())
    chosen = (each for each in candidates if len(ids[each]) - 1 >= _NEARLY_ALL * most)
    return columns.identified_by(next(chosen))


def _product(
    row: Mapping[str, Any], columns: Columns, notation: values.Notation
) -> tuple[str, Product, dict[str, str]] | str:
    """Return the id and the product of a row with its unread values, or why it is none."""
    cells = {name: columns.value(name, row) for name in columns.names}
    sku, brand, ingredients = (values.text(cells[name]) for name in ("sku", "brand", "ingredients"))
    # Exports of shops have HTML in these.
    read_text = values.text if columns.is_export else values.without_tags
    title, features, category = (read_text(cells[name]) for name in ("title", FEATURES, "category"))
    for name, found in (("sku", sku), ("title", title)):
        if found is None:
            return f"has no {columns.shown(name)}"
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
        **{name: values.plain(cells[name]) for name in columns.further},
    }
    known = {name: value for name, value in fields.items() if value is not None}
    document = " ".join(part for part in (title, features, category) if part)
    unread = {
        name: str(cells[name])
        for name, number in numbers.items()
        if number is None and cells[name] is not None
    }
    return str(sku), Product(document, known), unread


def _per_ounce(price: float | None, ounces: float | None) -> float | None:
    if price is None or ounces is None:
        return None
    quotient = price / ounces
    return quotient if math.isfinite(quotient) and quotient > 0 else None
