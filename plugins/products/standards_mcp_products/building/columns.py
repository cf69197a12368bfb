"""Which column of a file each field of a product comes from."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from standards_mcp import InvalidInputError

from .values import is_missing

FEATURES: Final = "features"
"""What a product is like: a part of the text that is searched, and no field."""
_EXPORT: Final[Mapping[str, Sequence[str]]] = {
    "sku": ("Uniq Id",),
    "title": ("Product Name",),
    FEATURES: ("About Product",),
    "category": ("Category",),
    "brand": ("Brand Name", "Brand"),
    "price": ("Selling Price", "List Price"),
    "rating": ("Rating", "Average Rating"),
    "ingredients": ("Ingredients",),
}
"""The columns of Amazon's export of 2020. Of a field's columns, the first with a value counts."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_COMPUTED: Final = ("doc_id", "document", "price_per_oz")


@dataclass(frozen=True, slots=True)
class Columns:
    """Where fields come from.

    Attributes:
        known: The columns of each field that products always may have, and of their features.
        further: The columns of fields that a mapping adds.
    """

    known: Mapping[str, Sequence[str]] = field(default_factory=lambda: _EXPORT)
    further: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def names(self) -> list[str]:
        """The fields and the features."""
        return [*self.known, *self.further]

    @property
    def sources(self) -> list[str]:
        """The columns that values come from."""
        return [each for names in (self.known, self.further) for each in chain(*names.values())]

    def value(self, name: str, row: Mapping[str, Any]) -> object:
        """Return what the first column of a field that is not empty has in a row; None if none."""
        columns = self.known.get(name) or self.further[name]
        given = (row.get(column) for column in columns)
        return next((each for each in given if not is_missing(each)), None)

    def shown(self, name: str) -> str:
        """Return the names of a field's columns, for messages."""
        return " or ".join(map(repr, self.known[name]))

    def check(self, heading: Sequence[str]) -> None:
        """Check that a file with this heading can have products.

        Raises:
            InvalidInputError: It has no column for what each product needs.
        """
        for name in ("sku", "title"):
            if not set(self.known[name]) & set(heading):
                raise InvalidInputError(
                    f"The file has no column {self.shown(name)} for {name}. Name the columns by "
                    f"--mapping; it has {', '.join(heading)}."
                )


def read_columns(file: Path | None) -> Columns:
    """Return the columns that a mapping names, and those of the export for all other fields.

    Args:
        file: TOML or JSON: an object from names of fields to columns.

    Raises:
        InvalidInputError: It cannot be read, or names what cannot be mapped.
    """
    if file is None:
        return Columns()
    known: dict[str, Sequence[str]] = dict(_EXPORT)
    further: dict[str, Sequence[str]] = {}
    for name, given in _parsed(file).items():
        if name in _COMPUTED or not _NAME.fullmatch(name):
            raise InvalidInputError(
                f"{file}: {name!r} cannot be mapped. A name has letters, digits, '_', '-' and '.', "
                f"and is none of {', '.join(_COMPUTED)}."
            )
        columns = cast("list[object]", given) if isinstance(given, list) else [given]
        if not columns or not all(isinstance(each, str) and each for each in columns):
            raise InvalidInputError(f"{file}: {name} must be the name of a column, or a list.")
        (known if name in known else further)[name] = tuple(map(str, columns))
    return Columns(known, further)


def _parsed(file: Path) -> Mapping[str, object]:
    try:
        content = file.read_text("utf-8-sig")
        is_toml = file.suffix.lower() == ".toml"
        found = tomllib.loads(content) if is_toml else json.loads(content)
    except OSError as error:
        raise InvalidInputError(f"{file}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{file} is neither TOML nor JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"{file} must be an object from names of fields to columns.")
    return cast("dict[str, object]", found)
