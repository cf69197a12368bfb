"""JSON of unknown shape, read without trust: a wrong type is a note, never an exception."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard

from standards_mcp_catalog.importing.report import Problem, SourceError, note

from .text import LONGEST_TEXT, clean, decode

Object: TypeAlias = Mapping[str, object]
"""A JSON object."""

_NUMBER: Final = (int, float)


def parse_json(data: bytes | str) -> object:
    """Return the value of a JSON document.

    Raises:
        SourceError: It is not JSON, nests too deep, or has an encoding that is not read.
    """
    text = data if isinstance(data, str) else decode(data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise SourceError(f"it is not JSON that can be read: {reason}") from None


def is_object(value: object) -> TypeGuard[Object]:
    """Return whether *value* is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether *value* is a JSON array."""
    return isinstance(value, list)


def unwrapped(value: object) -> object:
    """Return the value under ``data`` if this is the only key: ``{"data": ...}``."""
    if is_object(value) and set(value) == {"data"}:
        return value["data"]
    return value


class Fields:
    """The fields of one JSON object, by the types that its format gives them.

    Null, a missing field and blank text are the same. A value of a wrong type counts as missing
    and is noted in *problems*.
    """

    def __init__(self, data: Object, source: str, where: str, problems: list[Problem]) -> None:
        self.data = data
        self._source = source
        self._where = where
        self._problems = problems

    def note(self, reason: str, detail: str = "") -> None:
        """Note something about this object."""
        self._problems.append(note(reason, self._source, self._where, detail))

    def text(self, *names: str) -> str:
        """Return the first of the named fields that holds text or a number, cleaned, or ""."""
        found = (self._cleaned(name, self.data.get(name)) for name in names)
        return next((text for text in found if text), "")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of an array, or of a single text."""
        value = self.data.get(name)
        elements = value if is_array(value) else (value,)
        found = (self._cleaned(name, element) for element in elements)
        return tuple(dict.fromkeys(filter(None, found)))

    def number(self, name: str, default: float) -> float:
        """Return a finite number; one that is written as text counts."""
        value = self.data.get(name)
        if value is None:
            return default
        try:
            number = float(value) if isinstance(value, (*_NUMBER, str)) else float("nan")
        except (ValueError, OverflowError):
            number = float("nan")
        if isinstance(value, bool) or not abs(number) < float("inf"):
            self._wrong(name, value)
            return default
        return number

    def part(self, name: str) -> Fields:
        """Return the fields of an object in this one, or of an empty object."""
        value = self.data.get(name)
        if value is not None and not is_object(value):
            self._wrong(name, value)
        found: Object = value if is_object(value) else {}
        return Fields(found, self._source, self._where, self._problems)

    def parts(self, name: str) -> Iterator[Fields]:
        """Yield the objects of an array or of a map; anything else in it is noted."""
        value = self.data.get(name)
        if value is None:
            return
        elements = list(value.values()) if is_object(value) else value
        if not is_array(elements):
            self._wrong(name, value)
            return
        for element in elements:
            if is_object(element):
                yield Fields(element, self._source, self._where, self._problems)
            else:
                self._wrong(name, element)

    def _cleaned(self, name: str, value: object) -> str:
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                self.note("text cut", f"{name} has {len(value):,} characters")
            return clean(value)
        if isinstance(value, _NUMBER) and not isinstance(value, bool):
            return clean(json.dumps(value))
        if value is not None:
            self._wrong(name, value)
        return ""

    def _wrong(self, name: str, value: object) -> None:
        self.note("wrong type", f"{name} is {type_name(value)}")


def type_name(value: object) -> str:
    """Return the JSON name of the type of *value*, with its article."""
    names: Mapping[type, str] = {
        dict: "an object", list: "an array", str: "text", bool: "true or false",
        int: "a number", float: "a number",
    }  # fmt: skip
    return names.get(type(value), "null")


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *fields* without None, "" and empty lists."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [])}


def array_of(value: object) -> Sequence[object]:
    """Return *value* as an array: an array itself, or any other value as its one element."""
    return value if is_array(value) else (value,)
