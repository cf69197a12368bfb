"""Convert arguments that a client sent as text, such as "91" for 91 or "[3]" for [3].

Text stays text wherever the schema may admit text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

_Schema = Mapping[str, Any]

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
_BOOLEANS: Final = {"True": True, "False": False}
"""Booleans as Python and other languages write them."""


def fitted(arguments: Mapping[str, Any], schema: _Schema) -> dict[str, Any]:
    """Return *arguments* with values in place of the texts for them.

    Args:
        schema: The schema of all arguments, without references.
    """
    return {name: _fitted(value, _child(schema, name)) for name, value in arguments.items()}


def decoded_texts(value: object, schema: object) -> Iterator[str]:
    """Yield the texts that `fitted` parses as lists or objects."""
    if isinstance(value, str):
        types = _types(schema)
        if "string" not in types and not types.isdisjoint(("array", "object")):
            yield value
    for key, item in _items(value):
        yield from decoded_texts(item, _child(schema, key))


def admits_null(schema: object) -> bool:
    """Return True if a schema, without references, admits null."""
    return "null" in _types(schema)


def _fitted(value: Any, schema: object) -> Any:
    if isinstance(value, str):
        if "string" in (types := _types(schema)):
            return value
        value = _decoded(value, types)
    if isinstance(value, list | dict):
        fit = {key: _fitted(item, _child(schema, key)) for key, item in _items(value)}
        return fit if isinstance(value, dict) else list(fit.values())
    return value


def _decoded(text: str, types: frozenset[str]) -> Any:
    """Return the JSON value in a text if it is null or has one of the types, else the text."""
    try:
        value: Any = _BOOLEANS[text] if text in _BOOLEANS else json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float):
        if not math.isfinite(value):
            return text
        if "number" not in types and value.is_integer():
            value = int(value)
    return value if value is None or _TYPE_NAMES[type(value)] in types else text


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).items()
    return enumerate(value) if isinstance(value, list) else ()


def _types(schema: object) -> frozenset[str]:
    """Return the JSON types that a schema may admit; a superset, if it is not clear."""
    if not isinstance(schema, Mapping):
        return _ANY
    definition = cast("_Schema", schema)
    types = _ANY
    if (kinds := definition.get("type")) is not None:
        types &= _with_integers([kinds] if isinstance(kinds, str) else kinds)
    values = [definition["const"]] if "const" in definition else definition.get("enum")
    if values is not None:
        types &= _with_integers(_TYPE_NAMES[type(value)] for value in values)
    for options in _alternatives(definition):
        types &= frozenset[str]().union(*map(_types, options))
    return types


def _with_integers(kinds: Iterable[str]) -> frozenset[str]:
    types = frozenset(kinds)
    return types | {"integer"} if "number" in types else types


def _alternatives(schema: _Schema) -> Iterator[list[object]]:
    """Yield lists of subschemas; a value has to fit one of each list."""
    yield from (schema[key] for key in ("anyOf", "oneOf") if schema.get(key))
    yield from ([part] for part in schema.get("allOf", ()))


def _child(schema: object, key: str | int) -> object:
    """Return the schema of a value in an object or a list; True if it is unknown."""
    if not isinstance(schema, Mapping):
        return True
    definition = cast("_Schema", schema)
    own = _property(definition, key) if isinstance(key, str) else _element(definition, key)
    kind = "object" if isinstance(key, str) else "array"
    combined = [
        {"anyOf": [_child(option, key) for option in options if kind in _types(option)]}
        for options in _alternatives(definition)
    ]
    return {"allOf": [own, *combined]} if combined else own


def _property(schema: _Schema, key: str) -> object:
    properties: _Schema = schema.get("properties", {})
    if key in properties or "patternProperties" in schema:
        return properties.get(key, True)
    return schema.get("additionalProperties", True)


def _element(schema: _Schema, at: int) -> object:
    leading: list[object] = schema.get("prefixItems", [])
    return leading[at] if at < len(leading) else schema.get("items", True)
