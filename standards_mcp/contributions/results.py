"""From what a tool's function returns to what is sent: checked, rendered, and sendable at all."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, cast, get_origin

import pydantic_core
from pydantic import TypeAdapter

from standards_mcp.plugin import ToolResult

from .schemas import Schema, SchemaError, portable_output_schema, signature_of

_PARTS: Final[Mapping[str, tuple[type, ...]]] = {
    "text": (str,),
    "structured": (dict, NoneType),
    "is_error": (bool,),
    "notes": (tuple, list),
    "content": (tuple, list),
    "meta": (Mapping,),
}
_UNSTRUCTURED: Final = (inspect.Signature.empty, Any, str, ToolResult, dict, Mapping)


@dataclass(frozen=True, slots=True)
class Result:
    """How a function's return value is checked and rendered.

    Attributes:
        schema: The output schema, or None when the function promises no structure.
        wrapped: The value is not an object, and is published as ``{"result": value}``.
    """

    adapter: TypeAdapter[Any] | None = field(repr=False)
    schema: Schema | None
    wrapped: bool

    def render(self, value: Any) -> ToolResult:
        """Return the value as text and, where it has structure, as an object too.

        Raises:
            pydantic.ValidationError: The value is not what the annotation promised.
            ValueError: The value cannot be put as JSON.
        """
        if isinstance(value, ToolResult):
            return sendable(value)
        if self.adapter is None:
            data = _json_data(value)
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            return sendable(ToolResult(text=text, structured=_object_or_none(data)))
        checked = self.adapter.validate_python(value)
        data = _json_data(self.adapter.dump_python(checked, mode="json", by_alias=True))
        structured: dict[str, Any] = {"result": data} if self.wrapped else data
        text = data if isinstance(data, str) else pydantic_core.to_json(structured).decode()
        return sendable(ToolResult(text=text, structured=structured))


def read_result(function: Callable[..., Any]) -> Result:
    """Return how the values of *function* are rendered, from its return annotation.

    Raises:
        SchemaError: The annotation cannot be described as a JSON Schema.
    """
    annotation = signature_of(function).return_annotation
    if (get_origin(annotation) or annotation) in _UNSTRUCTURED:
        return Result(None, None, wrapped=False)
    try:
        adapter = TypeAdapter[Any](annotation)
        schema = adapter.json_schema(mode="serialization", by_alias=True)
    except Exception as exc:
        raise SchemaError(f"its result cannot be described: {exc}".splitlines()[0]) from exc
    try:
        return Result(adapter, portable_output_schema(schema), wrapped=False)
    except SchemaError:
        definitions = schema.pop("$defs", {})
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
        schema["$defs"] = definitions
    return Result(adapter, portable_output_schema(schema), wrapped=True)


def sendable(result: object) -> ToolResult:
    """Return *result* if it can be sent: one that cannot would end the whole connection.

    Raises:
        TypeError: It is no result, or its parts are of other types.
        ValueError: It cannot be put as JSON.
    """
    if not isinstance(result, ToolResult):
        raise TypeError(f"a {type(result).__name__} is no ToolResult")
    for name, kinds in _PARTS.items():
        if not isinstance(part := getattr(result, name), kinds):
            raise TypeError(f"a ToolResult has a {type(part).__name__} as its {name}")
    parts = (result.text, result.structured, result.notes, result.content, result.meta)
    pydantic_core.to_json(parts)
    return result


def error_result(error_type: str, message: str) -> ToolResult:
    """Return the envelope of a failed call."""
    message = message.encode(errors="replace").decode()
    envelope: dict[str, Any] = {
        "success": False,
        "results": [],
        "message": message,
        "error_type": error_type,
    }
    text = json.dumps(envelope, ensure_ascii=False)
    return ToolResult(text=text, structured=envelope, is_error=True)


def _json_data(value: Any) -> Any:
    """Return *value* as JSON data, which knows neither NaN nor infinity."""
    return pydantic_core.to_jsonable_python(value, inf_nan_mode="null")


def _object_or_none(data: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None
