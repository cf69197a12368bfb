"""Items of CSV files, of JSON files and of files with one JSON value a line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from .items import FIELD_OF, InputError, Item, checked_items, make_item, plain_line

_DEEPEST: Final = 50
_LONGEST_LIST: Final = 10


def csv_items(name: str, data: bytes) -> list[Item]:
    """Return an item for each row of a table; its first row names the columns, see `COLUMNS`.

    Raises:
        InputError: The file is not a table, or no column is a title or a text.
    """
    text = decoded(data)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), dialect_of(text), strict=True)
        header = next(rows, list[str]())
        fields = [_field(column) for column in header]
        if not {"title", "text"} & set(fields):
            columns = ", ".join(map(repr, header[:_LONGEST_LIST])) or "missing"
            raise InputError(
                f"none of its columns is called title or text; its columns are {columns}"
            )
        return checked_items(
            make_item(name, f"row {rows.line_num}", _joined(zip(fields, row, strict=False)))
            for row in rows
        )
    except csv.Error as error:
        raise InputError(f"it is not a table: {error}") from None


def json_items(name: str, data: bytes, *, is_lines: bool = False) -> list[Item]:
    """Return the items of JSON data: every text of a list, and every object with a title or text.

    Objects may hold further items, such as a unit its lessons. A unit that has no text of its own
    is not an item.

    Raises:
        InputError: The file is not JSON.
    """
    return checked_items(
        make_item(name, place, fields)
        for place, fields in _values_of(decoded(data), is_lines=is_lines)
    )


def _values_of(text: str, *, is_lines: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = enumerate(text.split("\n"), 1) if is_lines else [(0, text)]
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
        except ValueError as error:
            place = f"line {number}: " if is_lines else ""
            raise InputError(f"it is not JSON: {place}{error}") from None
        yield from _entries(value, f"line {number}" if is_lines else "")


def decoded(data: bytes) -> str:
    """Return the text of a table, which is UTF-8, UTF-16 with a mark, or Windows-1252.

    Raises:
        InputError: The file is not text.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        raise InputError("it is not text; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def dialect_of(text: str) -> type[csv.Dialect]:
    """Return the dialect of a table: spreadsheets write semicolons in some languages."""

    class Dialect(csv.excel):
        delimiter = max(",;\t", key=text.partition("\n")[0].count)

    return Dialect


def _field(column: str) -> str | None:
    return FIELD_OF.get(plain_line(column).casefold().replace("_", " "))


def _joined(cells: Any) -> dict[str, str]:
    """Return the texts by field; several columns of one field are joined."""
    fields: dict[str, list[str]] = {}
    for field, value in cells:
        if field is not None and str(value).strip():
            fields.setdefault(field, []).append(str(value))
    return {field: "\n".join(values) for field, values in fields.items()}


def _entries(value: Any, place: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the fields of each item in JSON data."""
    if depth > _DEEPEST:
        raise InputError("its elements are nested too deep")
    if isinstance(value, str):
        yield place, {"text": value}
    elif isinstance(value, list):
        for number, child in enumerate(cast("list[object]", value), 1):
            # A text is an item in a list of items, not in a list of words of an object.
            if depth == 0 or not isinstance(child, str):
                yield from _entries(child, f"{place}, {number}".lstrip(", "), depth + 1)
    elif isinstance(value, Mapping):
        yield from _object_entries(cast("Mapping[str, Any]", value), place, depth)


def _object_entries(
    entry: Mapping[str, Any], place: str, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    fields = _fields_of(entry)
    inner = [value for value in entry.values() if _has_objects(value)]
    if "text" in fields or ("title" in fields and not inner):
        yield place, fields
    for child in inner:
        yield from _entries(child, place or str(fields.get("title", "")), depth + 1)


def _has_objects(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and any(
        isinstance(child, Mapping | list) for child in cast("list[object]", value)
    )


def _fields_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    cells: list[tuple[str | None, str]] = []
    for key, value in entry.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            cells.append((_field(key), str(value)))
        elif isinstance(value, list):
            texts = [
                str(word) for word in cast("list[object]", value) if isinstance(word, str | int)
            ]
            cells += [(_field(key), text) for text in texts]
    return _joined(cells)
