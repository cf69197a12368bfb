"""Convert rows of a file to products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from . import values
from .columns import STANDARD_FIELDS, Columns
from .files import Row

Fields: TypeAlias = dict[str, str | float | bool]

_NEARLY_ALL: Final = 0.9
_MAX_SHOWN_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class Product:
    """The stored data of a product.

    Attributes:
        document: The embedded text.
        fields: The known fields, for filters.
    """

    document: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Products:
    """The products of a file, by their ids, and the part of the build's report on the file."""

    by_id: Mapping[str, Product]
    report: Mapping[str, Any]


def read_products(
    read_rows: Callable[[], Iterable[Row]], columns: Columns, delimiter: str
) -> Products:
    """Convert the rows of a file to products. If rows have the same id, the last one counts.

    Args:
        read_rows: Reads the rows. It is called for the choice of the id column, for the notation of
            prices, and for the conversion.
        delimiter: The character between the cells of a CSV file.
    """
    columns = _choose_id_column(read_rows(), columns)
    prices = (columns.value("price", row) for row in read_rows() if isinstance(row, Mapping))
    notation = values.detect_notation(prices, delimiter)
    products, row_numbers, number = dict[str, Product](), dict[str, int](), 0
    skipped, unread = list[dict[str, Any]](), dict[str, dict[str, Any]]()
    for number, row in enumerate(read_rows(), 1):
        outcome = row if isinstance(row, str) else _product(row, columns, notation)
        if isinstance(outcome, str):
            skipped.append({"row": number, "reason": outcome})
            continue
        doc_id, product, unread_cells = outcome
        if doc_id in row_numbers:
            reason = f"row {number} has the same id"
            skipped.append({"row": row_numbers[doc_id], "reason": reason})
        row_numbers[doc_id], products[doc_id] = number, product
        for name, cell in unread_cells.items():
            first = {"count": 0, "row": number, "value": cell[:_MAX_SHOWN_LENGTH]}
            unread.setdefault(name, first)["count"] += 1
    skipped.sort(key=lambda skipped_row: skipped_row["row"])
    report = {"mapping": columns.mapping, "unused": columns.unused, "read": number}
    return Products(products, {**report, "skipped": skipped, "unread": unread})


def _choose_id_column(rows: Iterable[Row], columns: Columns) -> Columns:
    """Choose one id column, because ids of two columns may be equal by chance.

    Choose the first column that has nearly as many distinct ids as the column with the most.
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
    return columns.with_id_column(next(chosen))


def _product(
    row: Mapping[str, Any], columns: Columns, notation: values.Notation
) -> tuple[str, Product, dict[str, str]] | str:
    """Return the id, product and unread values of a row, or the reason to skip it."""
    extra_fields = [name for name in columns.mapping if name not in STANDARD_FIELDS]
    cells = {name: columns.value(name, row) for name in (*STANDARD_FIELDS, *extra_fields)}
    # Exports of shops have HTML in names, features and categories.
    read_text = values.text if columns.is_export else values.without_tags
    texts = {name: values.text(cells[name]) for name in ("sku", "brand", "ingredients")}
    texts |= {name: read_text(cells[name]) for name in ("title", "features", "category")}
    for name in ("sku", "title"):
        if texts[name] is None:
            return f"has no {' or '.join(map(repr, columns.mapping[name]))}"
    title, features = texts["title"], texts.pop("features")
    price = values.price(cells["price"], notation)
    numbers = {"price": price, "rating": values.rating(cells["rating"])}
    ounces = values.ounces([title, features])
    per_ounce = price / ounces if price and ounces else 0
    fields: dict[str, str | float | bool | None] = {
        **texts,
        **numbers,
        "price_per_oz": per_ounce if 0 < per_ounce < math.inf else None,
        **{name: values.plain(cells[name]) for name in extra_fields},
    }
    known_fields = {name: value for name, value in fields.items() if value is not None}
    document = " ".join(part for part in (title, features, texts["category"]) if part)
    unread = {
        name: str(cells[name])
        for name, number in numbers.items()
        if number is None and cells[name] is not None
    }
    return str(texts["sku"]), Product(document, known_fields), unread
