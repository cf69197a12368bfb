"""JSON Schemas that every MCP client accepts, and why one would not.

Clients are stricter than the protocol: some drop a tool, or the whole server, over a root that is
not a plain object, a ``$ref``, a union with null, an array without ``items`` or an odd argument
name. So references are inlined, optional means optional and not nullable, and the rest is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

Schema = dict[str, Any]

ARGUMENT_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
MAX_SCHEMA_BYTES: Final = 32 * 1024
_ROOT_COMBINATORS: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref")
_NULL: Final = {"type": "null"}


class SchemaError(ValueError):
    """A schema that portable clients reject; the message is the reason."""


def portable_input_schema(schema: Mapping[str, Any]) -> Schema:
    """Return *schema* as every client accepts it, closed to unknown arguments.

    Raises:
        SchemaError: It cannot be put that way.
    """
    result = _plain_object(schema)
    result = cast("Schema", _without_null(_without_titles(result)))
    result.setdefault("properties", {})
    result["additionalProperties"] = False
    if reason := next(_problems(result), None):
        raise SchemaError(f"its input schema {reason}")
    return result


def portable_output_schema(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of a structured result with its references inlined.

    Raises:
        SchemaError: Its root is not a plain object, or it refers to itself.
    """
    return cast("Schema", _without_titles(_plain_object(schema)))


def _plain_object(schema: object) -> Schema:
    if not isinstance(schema, Mapping):
        raise SchemaError("its schema is not a JSON object")
    source = dict(cast("Mapping[str, Any]", schema))
    definitions = {**source.pop("definitions", {}), **source.pop("$defs", {})}
    inlined = cast("Schema", _inline(source, definitions, ()))
    if inlined.get("type") != "object":
        raise SchemaError("its schema is not a plain object ('type' must be 'object')")
    if combinator := next((key for key in _ROOT_COMBINATORS if key in inlined), None):
        raise SchemaError(f"its schema is not a plain object (no {combinator!r} at the root)")
    if len(json.dumps(inlined)) > MAX_SCHEMA_BYTES:
        raise SchemaError(f"its schema is larger than {MAX_SCHEMA_BYTES // 1024} KiB")
    return inlined


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return *node* with each of its direct children changed."""
    if isinstance(node, list):
        return [change(item) for item in cast("list[object]", node)]
    if isinstance(node, dict):
        return {key: change(value) for key, value in cast("Schema", node).items()}
    return node


def _as_schema(node: object) -> Schema:
    """Return *node* if it is a JSON object, else an empty one."""
    return cast("Schema", node) if isinstance(node, dict) else {}


def _inline(node: Any, definitions: Mapping[str, Any], open_refs: tuple[str, ...]) -> Any:
    schema = _as_schema(node)
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return _mapped(node, lambda child: _inline(child, definitions, open_refs))
    name = reference.rsplit("/", 1)[-1]
    if reference in open_refs:
        raise SchemaError(f"its schema refers to itself ({reference})")
    if name not in definitions:
        raise SchemaError(f"its schema refers to {reference}, which is not in it")
    siblings = {key: value for key, value in schema.items() if key != "$ref"}
    return _inline({**definitions[name], **siblings}, definitions, (*open_refs, reference))


def _without_titles(node: Any) -> Any:
    """Drop the titles that pydantic makes of names: they cost tokens and say nothing."""
    if not isinstance(node, dict):
        return _mapped(node, _without_titles)
    return {
        key: _mapped(value, _without_titles) if key == "properties" else _without_titles(value)
        for key, value in cast("Schema", node).items()
        if key != "title"
    }


def _without_null(node: Any) -> Any:
    changed = _mapped(node, _without_null)
    schema = _as_schema(changed)
    if _NULL not in schema.get("anyOf", ()):
        return changed
    options: list[Any] = schema.pop("anyOf")
    kept = [option for option in options if option != _NULL]
    if schema.get("default", ...) is None:
        del schema["default"]
    return {**kept[0], **schema} if len(kept) == 1 else {"anyOf": kept, **schema}


def _problems(node: Any, where: str = "") -> Iterator[str]:
    schema = _as_schema(node)
    if schema.get("type") == "array" and "items" not in schema:
        yield f"has an array without 'items' at {where or 'the root'}"
    for name, sub in schema.get("properties", {}).items():
        if not ARGUMENT_NAME.fullmatch(name):
            yield f"has an argument named {name!r}; use letters, digits, '_', '-' and '.'"
        yield from _problems(sub, f"{where}.{name}" if where else name)
    others = [value for key, value in schema.items() if key != "properties"]
    for child in cast("list[object]", node) if isinstance(node, list) else others:
        yield from _problems(child, where)
