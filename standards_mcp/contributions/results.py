"""Check and render the return values of tools, so that they can be sent."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import NoneType
from typing import Any, Final, TypeVar, cast, get_origin

import pydantic_core
from pydantic import TypeAdapter

from standards_mcp._utils.text import printable
from standards_mcp.plugin import ToolResult

from .schemas import (
    Schema,
    SchemaError,
    check_json_schema,
    portable_output_schema,
    schema_errors,
    schema_validator,
)

_T = TypeVar("_T")
_FIELD_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "text": (str,),
    "structured": (dict, NoneType),
    "is_error": (bool,),
    "notes": (tuple, list),
    "content": (tuple, list),
    "meta": (Mapping,),
}
_MAX_ITEMS: Final = 100_000
_UNSTRUCTURED: Final = (inspect.Signature.empty, Any, str, ToolResult, dict, Mapping)


@dataclass(frozen=True, eq=False)
class Result:
    """The check and the rendering of a function's return value.

    Attributes:
        adapter: Validates the value; None without an annotation of a structured type.
        schema: The output schema, or None.
        wrapped: True if the value is not an object, so that it is sent as ``{"result": value}``.
        is_declared: True if the author declared *schema*, so that each result is checked with it.
    """

    adapter: TypeAdapter[Any] | None = field(repr=False)
    schema: Schema | None
    wrapped: bool
    is_declared: bool = False

    @cached_property
    def _validator(self) -> Any:
        return schema_validator(self.schema or {})

    def render(self, value: Any) -> ToolResult:
        """Return the value as text and, where it has structure, as an object too.

        Raises:
            pydantic.ValidationError: The value does not fit the annotation.
            TypeError: A field of a `ToolResult` has the wrong type.
            ValueError: The value cannot be written as JSON, or its structured content does not fit
                the declared output schema.
        """
        if isinstance(value, ToolResult):
            return self._checked(sendable(value))
        # The value is serialised once: the text is the JSON, and the structure is parsed from it.
        if self.adapter is None:
            encoded = pydantic_core.to_json(read_iterator(value), inf_nan_mode="null")
        else:
            checked = self.adapter.validate_python(value)
            encoded = self.adapter.dump_json(checked, by_alias=True)
            if self.wrapped:
                encoded = b'{"result":%b}' % encoded
        data: Any = pydantic_core.from_json(encoded)
        unwrapped: Any = data["result"] if self.wrapped else data
        structured = cast("dict[str, Any]", data) if isinstance(data, dict) else None
        text = unwrapped if isinstance(unwrapped, str) else encoded.decode()
        return self._checked(ToolResult(text=text, structured=structured))

    def _checked(self, result: ToolResult) -> ToolResult:
        if not self.is_declared or result.is_error:
            return result
        if result.structured is None:
            raise ValueError(
                "its output schema requires structured content, but the result has none"
            )
        if mistakes := schema_errors(self._validator, result.structured, "the result"):
            raise ValueError(f"its structured content does not fit its output schema: {mistakes}")
        return result


def read_result(signature: inspect.Signature, declared: object = None) -> Result:
    """Return the rendering for a function with this `signature_of`, by its return annotation.

    Args:
        declared: The author's output schema, or a type to derive a schema from, or None.

    Raises:
        SchemaError: The annotation or *declared* cannot be described as a JSON Schema.
    """
    if declared is not None:
        if isinstance(declared, Mapping):
            schema = portable_output_schema(cast("Schema", declared))
            check_json_schema(schema, "output schema")
        else:
            schema = portable_output_schema(_adapter_and_schema(declared)[1])
        return Result(None, schema, wrapped=False, is_declared=True)
    annotation = signature.return_annotation
    if (get_origin(annotation) or annotation) in _UNSTRUCTURED:
        return Result(None, None, wrapped=False)
    adapter, schema = _adapter_and_schema(annotation)
    try:
        return Result(adapter, portable_output_schema(schema), wrapped=False)
    except SchemaError:
        # The root of an output schema must be an object.
        definitions = schema.pop("$defs", {})
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
        schema["$defs"] = definitions
    return Result(adapter, portable_output_schema(schema), wrapped=True)


def _adapter_and_schema(annotation: Any) -> tuple[TypeAdapter[Any], Schema]:
    try:
        adapter = TypeAdapter[Any](annotation)
        return adapter, adapter.json_schema(mode="serialization", by_alias=True)
    except Exception as exc:
        raise SchemaError(f"its result cannot be described: {exc}".splitlines()[0]) from exc


def read_iterator(value: object) -> object:
    """Return a list for an iterator, such as a generator, and any other value as it is.

    Raises:
        ValueError: The iterator has more than 100,000 items.
    """
    if isinstance(value, Iterator):
        return bounded_list(cast("Iterator[object]", value), _MAX_ITEMS)
    return value


def bounded_list(items: Iterable[_T], max_items: int) -> list[_T]:
    """Return the items of an iterable, which may be endless, as a list.

    Raises:
        ValueError: There are more than *max_items*.
    """
    first = list(islice(items, max_items + 1))
    if len(first) > max_items:
        raise ValueError(f"there are more than {max_items} items")
    return first


def sendable(result: object) -> ToolResult:
    """Return *result* with all values converted to JSON data, such as dates to text.

    Data that is not JSON would end the connection.

    Raises:
        TypeError: *result* is not a `ToolResult`, or a field of it has the wrong type.
        ValueError: A field cannot be written as JSON.
    """
    if not isinstance(result, ToolResult):
        raise TypeError(f"a {type(result).__name__} is not a ToolResult")
    for name, kinds in _FIELD_TYPES.items():
        if not isinstance(part := getattr(result, name), kinds):
            raise TypeError(f"a ToolResult has a {type(part).__name__} as its {name}")
    if not all(isinstance(note, str) for note in result.notes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("a ToolResult has a note that is not text")
    parts = (result.text, result.notes, result.structured, result.content, result.meta)
    encoded = pydantic_core.to_json(parts, inf_nan_mode="null")
    _, _, structured, content, meta = pydantic_core.from_json(encoded)
    plain = replace(result, structured=structured, content=tuple(content), meta=meta)
    return _with_data_in_text(plain, structured) if result.is_error and structured else plain


def _with_data_in_text(result: ToolResult, structured: dict[str, Any]) -> ToolResult:
    """Return a failed result whose text holds its structure, which some clients drop."""
    data = pydantic_core.to_json(structured).decode()
    texts = [str(block.get("text", "")) for block in result.content] or [result.text]
    if any(data in text or is_json_of(text, structured) for text in texts):
        return result
    if result.content:
        return replace(result, content=(*result.content, {"type": "text", "text": data}))
    return replace(result, text=f"{result.text}\n{data}".lstrip())


def is_json_of(text: str, structured: dict[str, Any]) -> bool:
    """Return True if a text is the JSON of a structure."""
    if not text.startswith("{"):
        return False
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False


def error_result(
    error_type: str, message: str, data: Mapping[str, Any] | None = None
) -> ToolResult:
    """Return the envelope of a failed call, with the data of its `ToolError`."""
    envelope: dict[str, Any] = {
        "success": False,
        "results": [],
        # The message may quote any text, even a lone surrogate that the client sent.
        "message": printable(message.encode(errors="replace").decode()),
        "error_type": error_type,
        **(data or {}),
    }
    encoded = pydantic_core.to_json(envelope, inf_nan_mode="null")
    structured: dict[str, Any] = pydantic_core.from_json(encoded)
    return ToolResult(text=encoded.decode(), structured=structured, is_error=True)
