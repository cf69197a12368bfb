"""Map the columns of a file to the fields of products, by a mapping or by usual names."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from standards_mcp import InvalidInputError

from .values import is_missing

_USUAL_NAMES: Final[Mapping[str, str]] = {
    "sku": (
        "sku productsku itemsku variantsku skuid id productid itemid articleid uniqid uniqueid "
        "productcode itemcode articlecode productnumber itemnumber articlenumber partnumber asin "
        "gtin ean upc isbn barcode handle"
    ),
    "title": "name title productname producttitle itemname itemtitle articlename displayname",
    # The HTML of a shop's page comes last: other columns have the same text without tags.
    "features": (
        "aboutproduct description productdescription itemdescription longdescription "
        "shortdescription summary features bulletpoints body bodyhtml descriptionhtml"
    ),
    "category": (
        "category categories productcategory categoryname categorypath producttype "
        "productcategorytree department googleproductcategory"
    ),
    "brand": "brandname brand brands productbrand manufacturer vendor maker",
    # The price of a sale comes last, because the dates of the sale are not read.
    "price": (
        "sellingprice price productprice itemprice currentprice variantprice priceusd usdprice "
        "discountedprice listprice regularprice retailprice msrp saleprice"
    ),
    "rating": "rating averagerating avgrating productrating overallrating starrating stars",
    "ingredients": "ingredients ingredientlist",
    "url": "url producturl itemurl link productlink permalink",
    "image": (
        "image imageurl imagelink imagesrc mainimage productimage images imageurls picture "
        "thumbnail thumbnailurl"
    ),
}
"""Column names of each field, in order of preference, in the form that `_normalised` returns."""


Names: TypeAlias = Mapping[str, Sequence[str]]
"""Column names by field."""

STANDARD_FIELDS: Final = tuple(name for name in _USUAL_NAMES if name not in ("url", "image"))
"""The fields with rules of their own. "features" is a part of the searched text, and not stored as
a field."""
_EXPORT_COLUMNS: Final = (
    "Uniq Id", "Product Name", "About Product", "Category", "Brand Name", "Brand", "Selling Price",
    "List Price", "Rating", "Average Rating", "Ingredients",
)  # fmt: skip
"""The columns of Amazon's export of 2020 that count. All have usual names."""
_FIELD_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_COMPUTED: Final = ("doc_id", "document", "price_per_oz")
_REQUIRED: Final = {"sku": "the id of a product", "title": "its name"}
_MAX_SHOWN_NAMES: Final = 50
_MAX_SHOWN_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file.

    Attributes:
        mapping: The columns of each field. The list is empty if the file lacks the columns that the
            user's mapping names.
        unused: Columns without a field.
        is_export: True for Amazon's export, whose texts contain no HTML.
    """

    mapping: dict[str, list[str]]
    unused: list[str]
    is_export: bool

    def with_id_column(self, column: str) -> Columns:
        """Return a copy that reads ids from this column only."""
        unused_ids = [name for name in self.mapping["sku"] if name != column]
        mapping = {**self.mapping, "sku": [column]}
        return Columns(mapping, [*self.unused, *unused_ids], self.is_export)

    def value(self, name: str, row: Mapping[str, Any]) -> object:
        """Return the first non-empty value of a field's columns in a row, else None."""
        cells = (row.get(column) for column in self.mapping.get(name, ()))
        return next((cell for cell in cells if not is_missing(cell)), None)


def columns_of(heading: Sequence[str], mapping: Names) -> Columns:
    """Map the columns of a file: by the mapping, as Amazon's export, or by usual names.

    Args:
        heading: The column names; empty for a file without rows.
        mapping: The result of `read_mapping`.

    Raises:
        InvalidInputError: There is no column for the id or the name of a product.
    """
    is_export = {"Uniq Id", "Product Name"} <= {*heading}
    offered = [column for column in heading if not is_export or column in _EXPORT_COLUMNS]
    columns: dict[str, list[str]] = {}
    for name in (*_USUAL_NAMES, *mapping):
        if name in mapping:
            columns[name] = [column for column in mapping[name] if column in heading]
        else:
            columns[name] = _usual_columns(name, offered)
        if name in _REQUIRED and heading and not columns[name]:
            missing = " or ".join(map(repr, mapping.get(name, ())))
            raise InvalidInputError(
                f"The file has no column{missing and f' {missing}, which the mapping names'} for "
                f"{name}, {_REQUIRED[name]}. It has {join_names(heading)}. Write the line "
                f'{name} = "COLUMN" into a file mapping.toml, with the right column, and add '
                "--mapping mapping.toml."
            )
    used = set(chain(*columns.values()))
    return Columns(
        {name: names for name, names in columns.items() if names or name in mapping},
        [column for column in heading if column not in used],
        is_export,
    )


def _usual_columns(field: str, heading: Sequence[str]) -> list[str]:
    """Return the columns that have a usual name of a field, in order of preference."""
    ranks = {name: rank for rank, name in enumerate(_USUAL_NAMES[field].split())}
    columns = (column for column in dict.fromkeys(heading) if _normalised(column) in ranks)
    return sorted(columns, key=lambda column: ranks[_normalised(column)])


def _normalised(column: str) -> str:
    """Return the letters and digits of a column's name, in lower case.

    The prefix ``g:``, as in feeds for Google Merchant, is removed.
    """
    name = unicodedata.normalize("NFKC", column).casefold().strip().removeprefix("g:")
    return "".join(character for character in name if character.isalnum())


def join_names(columns: Sequence[str]) -> str:
    """Join the first names of columns for a message."""
    first = ", ".join(name[:_MAX_SHOWN_LENGTH] for name in columns[:_MAX_SHOWN_NAMES])
    more = len(columns) - _MAX_SHOWN_NAMES
    return f"{first} and {more:,} more" if more > 0 else first


def read_mapping(file: Path | None) -> Names:
    """Parse a mapping file; without a file, return an empty mapping.

    Args:
        file: TOML or JSON, an object from field names to columns.

    Raises:
        InvalidInputError: The file is unreadable, or has a field that cannot be mapped.
    """
    if file is None:
        return {}
    try:
        content = file.read_text("utf-8-sig")
        is_toml = file.suffix.lower() == ".toml"
        parsed: Any = tomllib.loads(content) if is_toml else json.loads(content)
    except OSError as error:
        raise InvalidInputError(f"{file}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{file} is neither TOML nor JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError(f"{file} must be an object from names of fields to columns.")
    mapping = dict[str, list[str]]()
    for name, value in cast("dict[str, Any]", parsed).items():
        columns: list[Any] = [*value] if isinstance(value, list) else [value]
        is_field = _FIELD_NAME.fullmatch(name) and name not in _COMPUTED
        if not (is_field and columns and all(isinstance(column, str) for column in columns)):
            raise InvalidInputError(
                f"{file}: {name!r} cannot be mapped to {repr(columns)[:_MAX_SHOWN_LENGTH]}. A "
                "field has a name of letters, digits, '_', '-' and '.', and a column or a list of "
                f"columns; {', '.join(_COMPUTED)} are computed."
            )
        mapping[name] = columns
    return mapping
