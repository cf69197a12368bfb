"""Map the columns of a file to the fields of products, by a mapping or by usual names."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from standards_mcp import InvalidInputError

from .values import is_missing

_USUAL: Final[Mapping[str, str]] = {
    "sku": (
        "sku productsku itemsku variantsku skuid id productid itemid articleid uniqid uniqueid "
        "productcode itemcode articlecode productnumber itemnumber articlenumber partnumber asin "
        "gtin ean upc isbn barcode handle"
    ),
    "title": "name title productname producttitle itemname itemtitle articlename displayname",
    # The HTML of a shop's page comes last, as others say the same without it.
    "features": (
        "aboutproduct description productdescription itemdescription longdescription "
        "shortdescription summary features bulletpoints body bodyhtml descriptionhtml"
    ),
    "category": (
        "category categories productcategory categoryname categorypath producttype "
        "productcategorytree department googleproductcategory"
    ),
    "brand": "brandname brand brands productbrand manufacturer vendor maker",
    # A sale has dates, which are not read, so its price comes last.
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
"""Of a field's names, the first comes first. They are written as `_plain` returns them."""
FIELDS: Final = tuple(_USUAL)


def usual_columns(field: str, heading: Sequence[str]) -> list[list[str]]:
    """Return the columns of a heading that have a usual name of a field, in the order of names.

    Columns of one name, but for case and separators, are in one list.
    """
    by_name: dict[str, list[str]] = {name: [] for name in _USUAL[field].split()}
    for column in heading:
        if (name := _plain(column)) in by_name:
            by_name[name].append(column)
    return [columns for columns in by_name.values() if columns]


def _plain(column: str) -> str:
    """Return the letters and digits of a column's name, in lower case.

    Feeds for Google Merchant have ``g:`` before names.
    """
    name = unicodedata.normalize("NFKC", column).casefold().strip().removeprefix("g:")
    return "".join(each for each in name if each.isalnum())


Names: TypeAlias = Mapping[str, Sequence[str]]
"""Column names by field."""

FEATURES: Final = "features"
"""The features of a product: a part of the searched text, not a field."""
_EXPORT: Final[Names] = {
    "sku": ("Uniq Id",),
    "title": ("Product Name",),
    FEATURES: ("About Product",),
    "category": ("Category",),
    "brand": ("Brand Name", "Brand"),
    "price": ("Selling Price", "List Price"),
    "rating": ("Rating", "Average Rating"),
    "ingredients": ("Ingredients",),
}
"""The columns of Amazon's export of 2020. The first column with a value counts."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_COMPUTED: Final = ("doc_id", "document", "price_per_oz")
_REQUIRED: Final = {"sku": "the id of a product", "title": "its name"}
_MOST_SHOWN: Final = 50
_LONGEST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file.

    Attributes:
        known: The columns of the standard fields and of the features.
        further: The columns of all other fields.
        mapping: The columns of all fields with a column, or with one in the user's mapping.
        unused: Columns without a field.
        doubtful: Fields with several columns of one name; the first is used.
        is_export: True for Amazon's export, whose texts contain no HTML.
    """

    known: Names
    further: Names
    mapping: Mapping[str, list[str]]
    unused: list[str]
    doubtful: Mapping[str, list[str]]
    is_export: bool

    @property
    def names(self) -> list[str]:
        """The fields and the features."""
        return [*self.known, *self.further]

    @property
    def sources(self) -> list[str]:
        """All source columns."""
        return [column for names in (self.known, self.further) for column in chain(*names.values())]

    def identified_by(self, column: str) -> Columns:
        """Return the columns with only this one for ids."""
        unused_ids = [name for name in self.known["sku"] if name != column]
        ids = {"sku": [column]}
        return replace(
            self,
            known={**self.known, **ids},
            mapping={**self.mapping, **ids},
            unused=[*self.unused, *unused_ids],
        )

    def value(self, name: str, row: Mapping[str, Any]) -> object:
        """Return the first non-empty value of a field's columns in a row, else None."""
        columns = self.known[name] if name in self.known else self.further[name]
        cells = (row.get(column) for column in columns)
        return next((cell for cell in cells if not is_missing(cell)), None)

    def shown(self, name: str) -> str:
        """Return the names of a field's columns, for messages."""
        return " or ".join(map(repr, self.known[name]))


def columns_of(heading: Sequence[str], mapping: Names) -> Columns:
    """Map the columns of a file: by the mapping, as Amazon's export, or by usual names.

    Args:
        heading: The column names; empty for a file without rows.
        mapping: The result of `read_mapping`.

    Raises:
        InvalidInputError: The column for the id or the name of a product is missing or
            ambiguous.
    """
    names = set(heading)
    is_export = all(names.issuperset(_EXPORT[each]) for each in _REQUIRED)
    found: dict[str, list[str]] = {}
    doubtful: dict[str, list[str]] = {}
    for name in (*FIELDS, *mapping):
        if name in mapping or is_export:
            wanted = mapping.get(name) or _EXPORT.get(name, ())
            found[name] = [each for each in wanted if each in names]
        else:
            alike = usual_columns(name, heading)
            found[name] = [first for first, *_ in alike]
            if several := next((each for each in alike if len(each) > 1), None):
                if name in _REQUIRED:
                    raise _unclear(name, several)
                doubtful[name] = several
        if name in _REQUIRED and heading and not found[name]:
            raise _missing(name, heading, mapping.get(name, ()))
    used = set(chain(*found.values()))
    return Columns(
        known={name: found[name] for name in _EXPORT},
        further={name: found[name] for name in found if name not in _EXPORT},
        mapping={name: each for name, each in found.items() if each or name in mapping},
        unused=[each for each in heading if each not in used],
        doubtful=doubtful,
        is_export=is_export,
    )


def _unclear(name: str, columns: Sequence[str]) -> InvalidInputError:
    return InvalidInputError(
        f"The columns {' and '.join(map(repr, columns))} could both be the {name} of a product. "
        "Rename one of them, or name the right one in a mapping: write the line "
        f'{name} = "COLUMN" into a file mapping.toml, and add --mapping mapping.toml.'
    )


def _missing(name: str, heading: Sequence[str], mapped_columns: Sequence[str]) -> InvalidInputError:
    mapped = (
        f" {' or '.join(map(repr, mapped_columns))}, which the mapping names"
        if mapped_columns
        else ""
    )
    return InvalidInputError(
        f"The file has no column{mapped} for {name}, {_REQUIRED[name]}. It has {shown(heading)}. "
        f'Write the line {name} = "COLUMN" into a file mapping.toml, with the right column, and '
        "add --mapping mapping.toml."
    )


def shown(columns: Sequence[str]) -> str:
    """Return the names of columns for messages, as many as people read."""
    first = ", ".join(name[:_LONGEST_SHOWN] for name in columns[:_MOST_SHOWN])
    more = len(columns) - _MOST_SHOWN
    return f"{first} and {more:,} more" if more > 0 else first


def read_mapping(file: Path | None) -> Names:
    """Parse a mapping file; without a file, return an empty mapping.

    Args:
        file: TOML or JSON, an object from field names to columns.

    Raises:
        InvalidInputError: The file is unreadable, or has a field that cannot be mapped.
    """
    parsed: Mapping[str, object] = _parsed(file) if file else {}
    mapping: dict[str, Sequence[str]] = {}
    for name, value in parsed.items():
        if name in _COMPUTED or not _NAME.fullmatch(name):
            raise InvalidInputError(
                f"{file}: {name!r} cannot be mapped. A name has letters, digits, '_', '-' and '.', "
                f"and differs from {', '.join(_COMPUTED)}."
            )
        columns = cast("list[object]", value) if isinstance(value, list) else [value]
        if not columns or not all(isinstance(column, str) and column for column in columns):
            raise InvalidInputError(f"{file}: {name} must be the name of a column, or a list.")
        mapping[name] = tuple(map(str, columns))
    return mapping


def _parsed(file: Path) -> Mapping[str, object]:
    try:
        content = file.read_text("utf-8-sig")
        is_toml = file.suffix.lower() == ".toml"
        parsed = tomllib.loads(content) if is_toml else json.loads(content)
    except OSError as error:
        raise InvalidInputError(f"{file}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{file} is neither TOML nor JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError(f"{file} must be an object from names of fields to columns.")
    return cast("dict[str, object]", parsed)
