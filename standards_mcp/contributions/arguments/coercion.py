"""Fit arguments to their schema where a client sent text, such as "91" for 91 or "[3]" for [3].

Text stays text wherever the schema has a string among its alternatives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from standards_mcp.errors import InvalidInputError

from .mistakes import sentences

_Path = tuple[str | int, ...]
_Schema = Mapping[str, Any]

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NOT_PLAIN: Final = "this text is not a plain number; write one such as 3 or 0.5, without quotes"
_EXACT: Final = 2**53  # the whole numbers up to here are exact as floats
_TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def fitted(
    arguments: Mapping[str, Any], schema: _Schema, *, booleans: bool = False
) -> dict[str, Any]:
    """Return *arguments* with the numbers, lists and objects that were sent as text.

    Args:
        schema: The schema of all arguments, without references.
        booleans: True to take "true" and 1 for true, too, as pydantic does for annotated arguments.

    Raises:
        InvalidInputError: A text is a number, but none that JSON has, such as "nan" or " 3 ".
    """
    fit = _Fit(booleans=booleans)
    found = cast("dict[str, Any]", fit.value(dict(arguments), (schema,), ()))
    if fit.mistakes:
        raise InvalidInputError(sentences(fit.mistakes))
    return found


@dataclass
class _Fit:
    booleans: bool
    mistakes: list[tuple[_Path, str]] = field(default_factory=list[tuple[_Path, str]])

    def value(self, value: Any, schemas: Sequence[_Schema], path: _Path) -> Any:
        """Return *value* as one of the *schemas* has it; as it is if there is none."""
        alternatives = [each for schema in schemas for each in _alternatives(schema)]
        if not alternatives:
            return value
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            fitting = [each for each in alternatives if _may_be(table, each)]
            return {
                key: self.value(item, _children(fitting, key), (*path, key))
                for key, item in table.items()
            }
        if isinstance(value, list):
            items = list(cast("Iterable[Any]", value))
            fitting = [each for each in alternatives if _admits(each, "array")]
            return [
                self.value(item, _children(fitting, at), (*path, at))
                for at, item in enumerate(items)
            ]
        return self._plain(value, alternatives, path)

    def _plain(self, value: Any, alternatives: Sequence[_Schema], path: _Path) -> Any:
        types = frozenset[str]()
        for each in alternatives:
            admitted = _types(each)
            if admitted is None or "string" in admitted:
                return value
            types |= admitted
        if types & {"integer", "number"}:
            number = self._number(value, types, path) if isinstance(value, str) else value
            if not isinstance(number, str) or self.mistakes:
                return number
        if self.booleans and "boolean" in types:
            return _boolean(value)
        if not isinstance(value, str) or not types & {"array", "object"}:
            return value
        if value == "null":
            return None
        decoded = _decoded(value)
        is_wanted = ("array" in types and isinstance(decoded, list)) or (
            "object" in types and isinstance(decoded, dict)
        )
        return self.value(decoded, alternatives, path) if is_wanted else value

    def _number(self, text: str, types: frozenset[str], path: _Path) -> Any:
        if not _NUMBER.fullmatch(text):
            if _is_odd_number(text):
                self.mistakes.append((path, _NOT_PLAIN))
            return text
        try:
            number: int | float = json.loads(text)
        except ValueError:  # thousands of digits
            number = math.inf
        if not math.isfinite(number):
            self.mistakes.append((path, _NOT_PLAIN))
        elif isinstance(number, float) and "number" not in types and number.is_integer():
            return int(number) if abs(number) <= _EXACT else number
        return number


def admits_null(schema: object) -> bool:
    """Return True if a schema, without references, admits null."""
    return not isinstance(schema, Mapping) or any(
        _admits(each, "null") for each in _alternatives(cast("_Schema", schema))
    )


def _alternatives(schema: _Schema) -> Iterator[_Schema]:
    """Yield the schemas, without unions, of which a value has to fit one."""
    for key in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(key), list):
            rest = {name: each for name, each in schema.items() if name != key}
            for option in cast("list[object]", options):
                if isinstance(option, Mapping):
                    yield from _alternatives({**rest, **cast("_Schema", option)})
            return
    parts: object = schema.get("allOf")
    if not isinstance(parts, list):
        yield schema
        return
    joined = {name: each for name, each in schema.items() if name != "allOf"}
    for part in cast("list[object]", parts):
        if isinstance(part, Mapping):
            inner = cast("_Schema", part)
            properties = {**_table(joined, "properties"), **_table(inner, "properties")}
            joined = {**joined, **inner, "properties": properties}
    yield from _alternatives(joined)


def _table(schema: _Schema, key: str) -> _Schema:
    found = schema.get(key)
    return cast("_Schema", found) if isinstance(found, Mapping) else {}


def _types(schema: _Schema) -> frozenset[str] | None:
    """Return the JSON types that a schema admits, or None if it admits any."""
    kinds: object = schema.get("type")
    if isinstance(kinds, str):
        return frozenset({kinds})
    if isinstance(kinds, list):
        return frozenset(map(str, cast("list[object]", kinds)))
    values: object = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list):
        return None
    return frozenset(_TYPE_NAMES.get(type(each), "object") for each in cast("list[object]", values))


def _admits(schema: _Schema, kind: str) -> bool:
    types = _types(schema)
    return types is None or kind in types


def _may_be(table: Mapping[str, Any], schema: _Schema) -> bool:
    """Return True if an object can fit a schema, by its keys and by a constant such as its kind."""
    properties = _table(schema, "properties")
    if schema.get("additionalProperties") is False and not table.keys() <= properties.keys():
        return False
    constants = {
        key: cast("_Schema", each).get("const")
        for key, each in properties.items()
        if key in table and isinstance(each, Mapping)
    }
    return _admits(schema, "object") and all(
        not isinstance(constant, str) or table[key] == constant
        for key, constant in constants.items()
    )


def _children(schemas: Sequence[_Schema], key: str | int) -> list[_Schema]:
    """Return what the schemas say of a value in an object or a list; nothing if one admits any."""
    found = [
        _property(each, key) if isinstance(key, str) else _element(each, key) for each in schemas
    ]
    known = [cast("_Schema", each) for each in found if isinstance(each, Mapping)]
    return known if len(known) == len(found) else []


def _property(schema: _Schema, key: str) -> object:
    properties = _table(schema, "properties")
    return properties[key] if key in properties else schema.get("additionalProperties")


def _element(schema: _Schema, at: int) -> object:
    first: object = schema.get("prefixItems")
    leading = cast("list[object]", first) if isinstance(first, list) else []
    return leading[at] if at < len(leading) else schema.get("items")


def _is_odd_number(text: str) -> bool:
    """Return True for text that Python takes for a number and JSON does not, such as "1_000"."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@cache
def _booleans() -> TypeAdapter[bool]:
    # Built when the first value needs it: to build it takes time of every start.
    return TypeAdapter(bool)


def _boolean(value: Any) -> Any:
    try:
        return _booleans().validate_python(value)
    except ValidationError:
        return value
