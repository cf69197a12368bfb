"""Make JSON Schemas that every MCP client accepts, and describe data that does not fit them.

Clients are stricter than the protocol: some drop a tool, or the whole server, for a root that is
not a plain object, a ``$ref``, a union with null, an array without ``items`` or an odd argument
name. So references are inlined, an optional argument is not nullable, and a nullable result has
``null`` in its list of types instead of a union. Other such schemas are refused.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

from standards_mcp._utils.text import json_copy

Schema = dict[str, Any]
ARGUMENT_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
MAX_SCHEMA_BYTES: Final = 32 * 1024
_TOO_LARGE: Final = f"its schema is larger than {MAX_SCHEMA_BYTES // 1024} KiB"
_ROOT_COMBINATORS: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref")
_NULL: Final = {"type": "null"}
_DATA_KEYWORDS: Final = frozenset({"default", "const", "enum", "examples"})
_KEYWORDS_WITH_NAMES: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_MAX_SENTENCES: Final = 5
_MAX_SENTENCE_LENGTH: Final = 500


class SchemaError(ValueError):
    """Some clients would reject a schema; the message is the reason."""


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function with its annotations evaluated.

    Raises:
        SchemaError: The signature cannot be read.
    """
    try:
        return inspect.signature(function, eval_str=True)
    except Exception as exc:
        # Evaluating a text annotation runs code, which can raise any exception.
        raise SchemaError(f"its signature cannot be read: {exc}") from exc


def check_json_schema(schema: Mapping[str, Any], what: str = "input schema") -> None:
    """Check that *schema* is a JSON Schema.

    Args:
        what: The name of the schema in the error.

    Raises:
        SchemaError: *schema* is not a JSON Schema.
    """
    import jsonschema  # noqa: PLC0415  - costs start-up time, and most tools have signatures

    validator: Any = jsonschema.Draft202012Validator
    try:
        validator.check_schema(dict(schema), format_checker=validator.FORMAT_CHECKER)
    except Exception as exc:
        why = getattr(exc, "message", None) or str(exc)
        raise SchemaError(f"its {what} is not a JSON Schema: {short(why)}") from exc


def schema_validator(schema: Mapping[str, Any]) -> Any:
    """Return a validator of the draft that a schema names; it never fetches references."""
    import jsonschema.validators as library  # noqa: PLC0415  - costs start-up time
    import referencing  # noqa: PLC0415  - as above

    validators, references = cast("tuple[Any, Any]", (library, referencing))
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    return kind(schema, registry=references.Registry())


def portable_input_schema(schema: Mapping[str, Any]) -> Schema:
    """Return *schema* in a form that every client accepts, closed to unknown arguments.

    Raises:
        SchemaError: *schema* has no such form.
    """
    result = plain_object(schema)
    result = cast("Schema", _without_null(_without_titles(result)))
    result.setdefault("properties", {})
    result["additionalProperties"] = False
    if reason := next(_problems(result), None):
        raise SchemaError(f"its input schema {reason}")
    return result


def portable_output_schema(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of a structured result in a form that every client accepts.

    Raises:
        SchemaError: See `plain_object`.
    """
    return cast("Schema", _with_null_as_type(_without_titles(plain_object(schema))))


def plain_object(schema: object) -> Schema:
    """Return *schema* with its references inlined.

    Raises:
        SchemaError: The root is not a plain object, or the schema is recursive, too large, too
            deep, or not JSON data.
    """
    if not isinstance(schema, Mapping):
        raise SchemaError("its schema is not a JSON object")
    source = dict(cast("Mapping[str, Any]", schema))
    definitions = _as_schema(source.pop("definitions", {})) | _as_schema(source.pop("$defs", {}))
    try:
        inlined = cast("Schema", _Inliner(definitions).inline(source))
    except RecursionError:
        raise SchemaError("its schema is nested too deeply") from None
    if inlined.get("type") != "object":
        raise SchemaError("its schema is not a plain object ('type' must be 'object')")
    if combinator := next((key for key in _ROOT_COMBINATORS if key in inlined), None):
        raise SchemaError(f"its schema is not a plain object (no {combinator!r} at the root)")
    if len(json.dumps(inlined, default=str)) > MAX_SCHEMA_BYTES:
        raise SchemaError(_TOO_LARGE)
    try:
        return cast("Schema", json_copy(inlined))  # its author may change the original later
    except ValueError as exc:
        raise SchemaError(f"its schema cannot be sent as JSON: {exc}") from None


def _map_children(node: Any, change: Callable[[Any], Any]) -> Any:
    """Apply *change* to each schema directly below *node*; data such as defaults stays."""
    if isinstance(node, list):
        return [change(item) for item in cast("list[object]", node)]
    if not isinstance(node, dict):
        return node
    result = dict(cast("Schema", node))
    for key in result.keys() - _DATA_KEYWORDS:
        below = result[key]
        if key in _KEYWORDS_WITH_NAMES and isinstance(below, dict):
            named = cast("Schema", below)
            result[key] = {name: change(schema) for name, schema in named.items()}
        else:
            result[key] = change(below)
    return result


def _as_schema(node: object) -> Schema:
    """Return *node* if it is a JSON object, else an empty one."""
    return cast("Schema", node) if isinstance(node, dict) else {}


class _Inliner:
    """Replaces references by their definitions, up to `MAX_SCHEMA_BYTES`.

    Nested references can expand a schema of a few lines beyond the available memory.
    """

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._remaining = MAX_SCHEMA_BYTES

    def inline(self, node: Any, open_refs: tuple[str, ...] = ()) -> Any:
        # Count the minimum size as JSON, so that no schema within the limit is refused.
        self._remaining -= len(node) if isinstance(node, str) else 1
        if self._remaining < 0:
            raise SchemaError(_TOO_LARGE)
        reference = _as_schema(node).get("$ref")
        if not isinstance(reference, str):
            return _map_children(node, lambda child: self.inline(child, open_refs))
        if reference in open_refs:
            raise SchemaError(f"its schema refers to itself ({reference})")
        name = reference.rsplit("/", 1)[-1]
        if name not in self._definitions:
            raise SchemaError(f"its schema refers to {reference}, which is not in it")
        siblings = {key: value for key, value in _as_schema(node).items() if key != "$ref"}
        referred = _as_schema(self._definitions[name]) | siblings
        return self.inline(referred, (*open_refs, reference))


def _without_titles(node: Any) -> Any:
    """Drop the titles that pydantic derives from names: they cost tokens and add nothing."""
    changed = _map_children(node, _without_titles)
    _as_schema(changed).pop("title", None)
    return changed


def _without_null(node: Any) -> Any:
    # Some clients drop a tool for a union with null. The host reads null as "left out" anyway.
    changed = _map_children(node, _without_null)
    schema = _as_schema(changed)
    if isinstance(types := schema.get("type"), list) and "null" in types:
        kept = [item for item in cast("list[object]", types) if item != "null"]
        schema["type"] = kept[0] if len(kept) == 1 else kept or "null"
    if isinstance(values := schema.get("enum"), list) and None in values:
        schema["enum"] = [item for item in cast("list[object]", values) if item is not None]
    for union, options in _nullable_unions(schema):
        kept_options = options or [_NULL]
        if len(kept_options) == 1:
            del schema[union]
            schema |= {**kept_options[0], **schema}
        else:
            schema[union] = kept_options
    if schema.get("default", ...) is None:
        del schema["default"]
    return changed


def _with_null_as_type(node: Any) -> Any:
    # A result may be null. A list of types means the same as the union, and clients accept it.
    changed = _map_children(node, _with_null_as_type)
    schema = _as_schema(changed)
    for union, options in _nullable_unions(schema):
        types = [option.get("type") for option in options]
        simple = len(options) == 1 or all(option.keys() == {"type"} for option in options)
        if simple and all(isinstance(name, str) for name in types):
            del schema[union]
            schema |= {**(options[0] if options else {}), **schema, "type": [*types, "null"]}
            if "const" in schema:
                schema["enum"] = [schema.pop("const")]
            if isinstance(schema.get("enum"), list):
                schema["enum"] = [*schema["enum"], None]
    return changed


def _nullable_unions(schema: Schema) -> list[tuple[str, list[Schema]]]:
    """Return the unions with null of a schema: the keyword, and the other alternatives."""
    unions = ((key, schema.get(key)) for key in ("anyOf", "oneOf"))
    return [
        (key, [_as_schema(option) for option in cast("list[object]", options) if option != _NULL])
        for key, options in unions
        if isinstance(options, list) and _NULL in options
    ]


def _problems(node: Any, where: str = "") -> Iterator[str]:
    schema = _as_schema(node)
    if schema.get("type") == "array" and "items" not in schema:
        yield f"has an array without 'items' at {where or 'the root'}"
    for name, sub in _as_schema(schema.get("properties")).items():
        if not ARGUMENT_NAME.fullmatch(str(name)):
            yield f"has an argument named {name!r}; use letters, digits, '_', '-' and '.'"
        yield from _problems(sub, f"{where}.{name}" if where else name)
    others = [value for key, value in schema.items() if key not in _DATA_KEYWORDS | {"properties"}]
    for child in cast("list[object]", node) if isinstance(node, list) else others:
        yield from _problems(child, where)


def schema_errors(validator: Any, data: Mapping[str, Any], whole: str = "arguments") -> str:
    """Return the mistakes that a JSON Schema validator finds, or an empty string.

    Args:
        whole: The name of *data*, for mistakes that are not in one of its values.
    """
    return sentences(
        (error.path or (whole,), error.message.replace(repr(error.instance), "the value"))
        for error in validator.iter_errors(data)
    )


def sentences(mistakes: Iterable[tuple[Iterable[Any], str]]) -> str:
    """Join the first few mistakes, each with the path of its value, or return ""."""
    first = list(islice(mistakes, _MAX_SENTENCES + 1))
    shown = [
        short(f"{'.'.join(map(str, path))}: {message}") for path, message in first[:_MAX_SENTENCES]
    ]
    return "; ".join([*shown, "and more"] if len(first) > _MAX_SENTENCES else shown)


def short(text: str) -> str:
    """Return *text*, cut if it is longer than a sentence of an error message may be."""
    return text if len(text) <= _MAX_SENTENCE_LENGTH else f"{text[:_MAX_SENTENCE_LENGTH]} ..."
