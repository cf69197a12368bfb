"""Makes products of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from typing_extensions import TypedDict

from . import values
from .columns import FEATURES, Columns
from .files import Row, Unreadable

Fields: TypeAlias = dict[str, str | float | bool]


class Skipped(TypedDict):
    """A row that has become no product."""

    row: int
    reason: str


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
    """

    columns: Columns
    read: int = 0
    found: dict[str, Product] = field(default_factory=dict[str, Product])
    skipped: list[Skipped] = field(default_factory=list[Skipped])


def read_products(rows: Iterable[Row], columns: Columns) -> Products:
    """Return the products of rows. The last of equal ids counts."""
    products, places = Products(columns), dict[str, int]()
    for number, row in enumerate(rows, 1):
        products.read = number
        found = row.reason if isinstance(row, Unreadable) else _product(row, columns)
        if isinstance(found, str):
            products.skipped.append({"row": number, "reason": found})
            continue
        doc_id, product = found
        if doc_id in places:
            reason = f"row {number} has the same id"
            products.skipped.append({"row": places[doc_id], "reason": reason})
        places[doc_id] = number
        products.found[doc_id] = product
    products.skipped.sort(key=lambda each: each["row"])
    return products


def _product(row: Mapping[str, Any], columns: Columns) -> tuple[str, Product] | str:
    """Return the id and the product of a row, or why it is none."""
    cells = {name: columns.value(name, row) for name in columns.names}
    sku, brand, ingredients = (values.text(cells[name]) for name in ("sku", "brand", "ingredients"))
    # Exports of shops have HTML in these.
    read_text = values.text if columns.is_export else values.without_tags
    title, features, category = (read_text(cells[name]) for name in ("title", FEATURES, "category"))
    for name, found in (("sku", sku), ("title", title)):
        if found is None:
            return f"has no {columns.shown(name)}"
    price = values.price(cells["price"])
    fields: dict[str, str | float | bool | None] = {
        "sku": sku,
        "title": title,
        "category": category,
        "brand": brand,
        "price": price,
        "rating": values.rating(cells["rating"]),
        "ingredients": ingredients,
        "price_per_oz": _per_ounce(price, values.ounces([title, features])),
        **{name: values.plain(cells[name]) for name in columns.further},
    }
    known = {name: value for name, value in fields.items() if value is not None}
    document = " ".join(part for part in (title, features, category) if part)
    return str(sku), Product(document, known)


def _per_ounce(price: float | None, ounces: float | None) -> float | None:
    if price is None or ounces is None:
        return None
    quotient = price / ounces
    return quotient if math.isfinite(quotient) and quotient > 0 else None
