"""Convert arguments that a client sent as text, such as "91" for 91 or "[3]" for [3].

Text stays text wherever the schema may admit text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from standards_mcp.errors import InvalidInputError

from .schemas import sentences

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
_ANY: Final = frozenset(_TYPE_NAMES.values())
_COMBINING: Final = ("anyOf", "oneOf", "allOf", "if", "then", "else")


def fitted(
    arguments: Mapping[str, Any], schema: _Schema, *, booleans: bool = False
) -> dict[str, Any]:
    """Return *arguments* with numbers, lists and objects in place of the texts for them.

    Args:
        schema: The schema of all arguments, without references.
        booleans: True to accept "true" and 1 for true, as pydantic does for annotated arguments.

    Raises:
        InvalidInputError: A text is a number that JSON does not have, such as "nan" or " 3 ".
    """
    properties: _Schema = schema.get("properties", {})
    if not booleans and all(_stays(value, properties.get(key)) for key, value in arguments.items()):
        return dict(arguments)
    fit = _Fit(booleans=booleans)
    converted = cast("dict[str, Any]", fit.value(dict(arguments), schema, ()))
    if fit.mistakes:
        raise InvalidInputError(sentences(fit.mistakes))
    return converted


def decoded_texts(value: object, schema: object) -> Iterator[str]:
    """Yield the texts that `fitted` parses as lists or objects."""
    if isinstance(value, dict | list):
        container = cast("dict[str, Any] | list[Any]", value)
        fitting = _pruned(container, schema) or {}
        for key, item in _items(container):
            yield from decoded_texts(item, _child(fitting, key))
    elif isinstance(value, str) and _is_decoded(_types(schema)):
        yield value


@dataclass
class _Fit:
    booleans: bool
    mistakes: list[tuple[_Path, str]] = field(default_factory=list[tuple[_Path, str]])

    def value(self, value: Any, schema: object, path: _Path) -> Any:
        """Return *value* converted for the schema; unchanged if the schema is not clear."""
        if not isinstance(value, dict | list):
            return self._plain(value, schema, path)
        container = cast("dict[str, Any] | list[Any]", value)
        fitting = _pruned(container, schema) or {}
        fit = {
            key: self.value(item, _child(fitting, key), (*path, key))
            for key, item in _items(container)
        }
        return fit if isinstance(container, dict) else list(fit.values())

    def _plain(self, value: Any, schema: object, path: _Path) -> Any:
        types = _types(schema)
        if "string" in types:
            return value
        if types & {"integer", "number"}:
            number = self._number(value, types, path) if isinstance(value, str) else value
            if not isinstance(number, str) or self.mistakes:
                return number
        if self.booleans and "boolean" in types:
            return _boolean(value)
        if not isinstance(value, str) or not _is_decoded(types):
            return value
        if value == "null":
            return None
        decoded = _decoded(value)
        is_wanted = ("array" in types and isinstance(decoded, list)) or (
            "object" in types and isinstance(decoded, dict)
        )
        return self.value(decoded, schema, path) if is_wanted else value

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


def _stays(value: object, schema: object) -> bool:
    """Return True if an argument needs no conversion."""
    if isinstance(value, str):
        return "string" in _types(schema)
    return not isinstance(value, dict | list)


def admits_null(schema: object) -> bool:
    """Return True if a schema, without references, admits null."""
    return "null" in _types(schema)


def _is_decoded(types: frozenset[str]) -> bool:
    return "string" not in types and not types.isdisjoint(("array", "object"))


def _items(container: dict[str, Any] | list[Any]) -> Iterable[tuple[Any, Any]]:
    return container.items() if isinstance(container, dict) else enumerate(container)


def _groups(schema: _Schema) -> Iterator[list[object]]:
    """Yield lists of subschemas; a value has to fit one of each list."""
    for key in ("anyOf", "oneOf"):
        if options := schema.get(key):
            yield options
    yield from ([part] for part in schema.get("allOf", ()))
    if "if" in schema:
        yield [schema.get("then", True), schema.get("else", True)]


def _types(schema: object) -> frozenset[str]:
    """Return the JSON types that a schema may admit."""
    if not isinstance(schema, Mapping):
        return _ANY
    types = _own_types(cast("_Schema", schema))
    for group in _groups(cast("_Schema", schema)):
        types &= frozenset[str]().union(*map(_types, group))
    return types


def _own_types(schema: _Schema) -> frozenset[str]:
    """Return the JSON types that a schema admits without regard to its subschemas."""
    types, kinds = _ANY, schema.get("type")
    if kinds is not None:
        types &= _with_integers([kinds] if isinstance(kinds, str) else kinds)
    values: list[object] | None = [schema["const"]] if "const" in schema else schema.get("enum")
    if values is not None:
        types &= _with_integers(_TYPE_NAMES.get(type(each), "object") for each in values)
    return types


def _with_integers(kinds: Iterable[str]) -> frozenset[str]:
    types = frozenset(kinds)
    return types | {"integer"} if "number" in types else types


def _pruned(value: dict[str, Any] | list[Any], schema: object) -> _Schema | None:
    """Return a schema without the alternatives that an object or a list cannot fit.

    Return None if no alternative fits.
    """
    if not isinstance(schema, Mapping):
        return {}
    definition = cast("_Schema", schema)
    if not _may_be(value, definition):
        return None
    parts: list[_Schema] = []
    for group in _groups(definition):
        options = [option for each in group if (option := _pruned(value, each)) is not None]
        if not options:
            return None
        parts.append({"anyOf": options})
    return {key: each for key, each in definition.items() if key not in _COMBINING} | {
        "allOf": parts
    }


def _may_be(value: dict[str, Any] | list[Any], schema: _Schema) -> bool:
    """Return True if a value can fit a schema, by its keys and by a constant such as its kind."""
    if isinstance(value, list):
        return "array" in _own_types(schema)
    properties: _Schema = schema.get("properties", {})
    if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
        return False
    constants = (
        (value[key], cast("_Schema", each).get("const"))
        for key, each in properties.items()
        if key in value and isinstance(each, Mapping)
    )
    return "object" in _own_types(schema) and all(
        not isinstance(constant, str) or actual == constant for actual, constant in constants
    )


def _child(schema: _Schema, key: str | int) -> object:
    """Return the schema of a value in an object or a list; True if unknown."""
    own = _property(schema, key) if isinstance(key, str) else _element(schema, key)
    parts: list[object] = [own] if isinstance(own, Mapping) else []
    for group in _groups(schema):
        options = [_child(cast("_Schema", each), key) for each in group]
        if all(isinstance(each, Mapping) for each in options):
            parts.append(options[0] if len(options) == 1 else {"anyOf": options})
    return ({"allOf": parts} if parts[1:] else parts[0]) if parts else True


def _property(schema: _Schema, key: str) -> object:
    properties: _Schema = schema.get("properties", {})
    if key in properties or "patternProperties" in schema:
        return properties.get(key)
    return schema.get("additionalProperties")


def _element(schema: _Schema, at: int) -> object:
    leading: list[object] = schema.get("prefixItems", [])
    return leading[at] if at < len(leading) else schema.get("items")


def _is_odd_number(text: str) -> bool:
    """Return True for text that is a number in Python but not in JSON, such as "1_000"."""
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
    # Built for the first value that needs it, because building it would slow every start.
    return TypeAdapter(bool)


def _boolean(value: Any) -> Any:
    try:
        return _booleans().validate_python(value)
    except ValidationError:
        return value
