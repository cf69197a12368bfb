"""Derive a tool's input schema from its function, and validate arguments by it.

Clients send numbers, lists and objects as text, such as "91" for 91 or "[3]" for [3]. The second
half of this module converts them; text stays text wherever the schema may admit text.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Annotated, Any, Final, NamedTuple, Protocol, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from standards_mcp._utils.text import describe_exception, did_you_mean
from standards_mcp.errors import InvalidInputError
from standards_mcp.filters import FilterExpression, combine
from standards_mcp.plugin import CallContext, Filter, Tool

from .schemas import (
    Schema,
    SchemaError,
    check_json_schema,
    plain_object,
    portable_input_schema,
    schema_errors,
    schema_validator,
    sentences,
    short,
    signature_of,
)

_NAMED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_FILTER_ARGUMENT: Final = "filter"
_SchemaView = Mapping[str, Any]
_TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
_ALL_TYPES: Final = frozenset(_TYPE_NAMES.values())
_BOOLEANS: Final = {"True": True, "False": False}
"""Booleans as Python and other languages write them."""


class Arguments(Protocol):
    """The arguments of one tool: their schema and their validation."""

    @property
    def schema(self) -> Schema:
        """The portable input schema."""
        ...

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function.

        Raises:
            InvalidInputError: Arguments are wrong; the message has a short sentence for each.
            ToolError: A filter failed.
        """
        ...


class UncheckedArguments(NamedTuple):
    """Arguments that only another server checks, so that its error messages reach the client."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments unchecked. See `Arguments.validate`."""
        return dict(arguments)


class ModelArguments(NamedTuple):
    """Arguments derived from a function's signature and the registered filters.

    Attributes:
        model: Returns the model of the arguments, which is built at its first use.
        filters: The filters among the arguments; None if the tool accepts no filters.
    """

    model: Callable[[], type[BaseModel]]
    names: tuple[str, ...]
    filters: tuple[Filter, ...] | None
    schema: Schema

    def mistake(self, name: str, value: Any) -> str:
        """Return the mistake in one argument, regardless of the others, or an empty string.

        Filters are not called.
        """
        try:
            self.model().model_validate(_checked({name: value}, self.schema))
        except ValidationError as exc:
            for item in exc.errors(include_url=False, include_input=False):
                if item["loc"][:1] == (name,):
                    return _plain_message(item["type"], item["msg"])
        except Exception as exc:  # noqa: BLE001  - a validator is code of the plugin
            return describe_exception(exc)
        return ""

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments, with the filters combined. See `Arguments.validate`."""
        try:
            model = self.model().model_validate(
                _checked(fitted(arguments, self.schema, booleans=False), self.schema)
            )
        except ValidationError as exc:
            items = exc.errors(include_url=False, include_input=False)
            mistakes = [(item["loc"], _plain_message(item["type"], item["msg"])) for item in items]
            raise InvalidInputError(sentences(mistakes)) from None
        values = [*vars(model).values()]  # in the order of the fields
        keywords = dict(zip(self.names, values, strict=False))
        if self.filters is not None:
            pairs = zip(self.filters, values[len(self.names) :], strict=True)
            keywords[_FILTER_ARGUMENT] = combine(
                *[
                    await filter_expression(item, value)
                    for item, value in pairs
                    if value is not None
                ]
            )
        return keywords


@dataclass(frozen=True, eq=False)
class SchemaArguments:
    """Arguments described by a hand-written JSON Schema."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, fitted to the schema if necessary. See `Arguments.validate`."""
        values = self.without_nulls(arguments)
        if not self._validator.is_valid(values):
            values = self.without_nulls(fitted(arguments, self.inlined))
            if mistakes := schema_errors(self._validator, values):
                raise InvalidInputError(mistakes)
        return values

    def without_nulls(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse unknown arguments, and leave out nulls that mean "left out"."""
        return _checked(arguments, self.schema)

    @cached_property
    def inlined(self) -> Schema:
        """The schema without references."""
        return plain_object(self.schema)

    @cached_property
    def _validator(self) -> Any:
        return schema_validator(self.schema)


def read_arguments(
    tool: Tool, filters: Iterable[Filter] = (), signature: inspect.Signature | None = None
) -> Arguments:
    """Return the arguments of a tool, with *filters* added if it accepts them.

    Raises:
        SchemaError: The arguments have no schema that every client accepts.
    """
    if tool.input_schema is not None:
        if tool.accepts_filters:
            raise SchemaError("a tool with a hand-written input schema cannot accept filters")
        schema = portable_input_schema(tool.input_schema)  # limits the size of the next check
        check_json_schema(tool.input_schema)
        return SchemaArguments(schema)
    signature = signature or signature_of(tool.function)
    context = (name,) if (name := context_argument(tool.function, signature)) else ()
    if not tool.accepts_filters:
        return read_signature(signature, context)
    return read_signature(signature, (_FILTER_ARGUMENT, *context), tuple(filters))


def filter_arguments(filters: tuple[Filter, ...]) -> Arguments:
    """Return the arguments of a tool that has only these filters.

    Raises:
        SchemaError: The filters have no schema that every client accepts.
    """

    def accept(filter: FilterExpression | None) -> None:  # noqa: A002
        del filter

    return read_arguments(Tool(name="filters", function=accept, accepts_filters=True), filters)


def context_argument(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """Return the name of the argument that takes the `CallContext`, or an empty string.

    Raises:
        SchemaError: The function has such an argument but is not async.
    """
    parameters = signature.parameters.values()
    # Also in `CallContext | None`, for authors who call the function themselves.
    types = {each.name: (each.annotation, *get_args(each.annotation)) for each in parameters}
    name = next((each for each, annotations in types.items() if CallContext in annotations), "")
    if name and not inspect.iscoroutinefunction(function):
        raise SchemaError(
            f"its argument {name!r} is a CallContext, so it must be an async function"
        )
    return name


def read_signature(
    signature: inspect.Signature,
    host_arguments: Sequence[str] = (),
    filters: tuple[Filter, ...] | None = None,
) -> ModelArguments:
    """Return the arguments of a function with this `signature_of`.

    Args:
        host_arguments: The names of arguments that the host adds, hidden from clients.
        filters: The filters to add as optional arguments.

    Raises:
        SchemaError: The arguments have no schema that every client accepts.
    """
    parameters = _parameters(signature, host_arguments)
    fields = [_model_field(parameter) for parameter in parameters.values()]
    names = [info.alias for _, info in fields]
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise SchemaError(f"two of its arguments are called {min(duplicates)!r}")
    if conflicts := {item.name for item in filters or ()}.intersection(names):
        raise SchemaError(f"filter {min(conflicts)!r} has the name of one of its arguments")
    try:
        for item in filters or ():
            optional = Field(None, alias=item.name, description=item.description)
            fields.append((item.annotation | None, optional))
        model = cache(partial(_model, fields))
        schema = _schema_of_texts(fields) or model().model_json_schema(by_alias=True)
        schema = portable_input_schema(schema)
    except SchemaError:
        raise
    except Exception as exc:
        # Only the first line is the reason; a link to pydantic's documentation follows.
        raise SchemaError(f"its arguments cannot be described: {exc}".splitlines()[0]) from exc
    return ModelArguments(model, tuple(parameters), filters, schema)


def _model(fields: Iterable[tuple[Any, Any]]) -> type[BaseModel]:
    # Named by position: pydantic reserves names that arguments may have.
    definitions: dict[str, Any] = {f"argument_{i}": each for i, each in enumerate(fields)}
    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    return create_model("Arguments", __config__=config, **definitions)


def _schema_of_texts(fields: Iterable[tuple[Any, Any]]) -> Schema | None:
    """Return the schema of arguments that are texts, and None for others.

    pydantic returns the same, but takes half a millisecond of each start.
    """
    properties: Schema = {}
    for annotation, info in fields:
        note = annotation.__metadata__[0] if get_origin(annotation) is Annotated else Field()
        description = getattr(note, "description", None)
        is_text = annotation is str or annotation == Annotated[str, note]
        has_text = info.is_required() or type(info.default) is str
        if not (is_text and has_text) or repr(note) != repr(Field(description=description)):
            return None  # it has another type or default, or a constraint
        values = {"default": info.default, "description": description, "type": "string"}
        properties[info.alias] = {key: text for key, text in values.items() if type(text) is str}
    required = [info.alias for _, info in fields if info.is_required()]
    schema: Schema = {"properties": properties, "type": "object"}
    return {**schema, "required": required} if required else schema


def _parameters(
    signature: inspect.Signature, host_arguments: Sequence[str]
) -> dict[str, inspect.Parameter]:
    parameters = dict(signature.parameters)
    for name in host_arguments:
        if parameters.pop(name, None) is None:
            raise SchemaError(f"its function has no argument {name!r}, which the host gives it")
    for parameter in parameters.values():
        if parameter.kind not in _NAMED_KINDS:
            raise SchemaError(f"its argument {parameter.name!r} cannot be given by name")
        if parameter.annotation is inspect.Parameter.empty:
            raise SchemaError(f"its argument {parameter.name!r} has no annotation")
    return parameters


def _model_field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    """Return the type and the pydantic field of an argument; the alias is its name for clients."""
    default, annotation = parameter.default, parameter.annotation
    # `x: int = Field(5, ge=1)`: as metadata of the type, so that the type's other metadata stays.
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], inspect.Parameter.empty
    default = ... if default is inspect.Parameter.empty else default
    name = FieldInfo.from_annotation(cast("Any", annotation)).alias or parameter.name
    return annotation, Field(default, alias=name)


async def filter_expression(item: Filter, value: Any) -> FilterExpression | None:
    """Return a filter's expression for a value."""
    expression = item.to_expression(value)
    return await expression if inspect.isawaitable(expression) else expression


def _checked(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Refuse unknown arguments, and drop nulls of optional ones, which mean "left out"."""
    properties = schema["properties"]
    refuse_unknown(arguments, properties)
    required = schema.get("required", ())
    return {
        name: value for name, value in arguments.items() if value is not None or name in required
    }


def refuse_unknown(arguments: Mapping[str, Any], properties: Iterable[str]) -> None:
    """Refuse arguments that are not among *properties*.

    Raises:
        InvalidInputError: An argument is unknown; the message suggests the nearest property.
    """
    names = tuple(properties)
    for name in arguments:
        if name not in names:
            expected = ", ".join(names) or "none"
            hint = did_you_mean(name, names) or f"; known: {expected}"
            raise InvalidInputError(f"{short(name)}: unknown argument{hint}")


def _plain_message(kind: str, message: str) -> str:
    """Return an error message of pydantic in plainer words.

    Args:
        kind: The type of the error, as pydantic calls it.
    """
    if kind == "missing":
        return "this argument is required"
    message = message.removeprefix("Value error, ").removeprefix("Input ").split(", unable")[0]
    return message[:1].lower() + message[1:]


def fitted(
    arguments: Mapping[str, Any], schema: _SchemaView, *, booleans: bool = True
) -> dict[str, Any]:
    """Return *arguments* with texts parsed to the types that the schema asks for.

    Args:
        schema: The schema of all arguments, with references inlined.
        booleans: False to leave "true" to pydantic, which refuses it for a `StrictBool`.
    """
    return {
        name: _fitted(value, _child(schema, name), booleans) for name, value in arguments.items()
    }


def decoded_texts(value: object, schema: object) -> Iterator[str]:
    """Yield the texts that `fitted` parses as lists or objects."""
    if isinstance(value, str):
        types = _types(schema)
        if "string" not in types and not types.isdisjoint(("array", "object")):
            yield value
    for key, item in _items(value):
        yield from decoded_texts(item, _child(schema, key))


def admits_null(schema: object) -> bool:
    """Return True if a schema, with references inlined, admits null."""
    return "null" in _types(schema)


def _fitted(value: Any, schema: object, booleans: bool) -> Any:  # noqa: FBT001  - as in `fitted`
    if isinstance(value, str):
        if "string" in (types := _types(schema)):
            return value
        value = _decoded(value, types if booleans else types - {"boolean"})
    if isinstance(value, list | dict):
        fit = {key: _fitted(item, _child(schema, key), booleans) for key, item in _items(value)}
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
    return enumerate(value if isinstance(value, list) else ())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _types(schema: object) -> frozenset[str]:
    """Return the JSON types that a schema may admit; a superset if the schema is unclear."""
    if not isinstance(schema, Mapping):
        return _ALL_TYPES
    definition = cast("_SchemaView", schema)
    types = _ALL_TYPES
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


def _alternatives(schema: _SchemaView) -> Iterator[list[object]]:
    """Yield lists of subschemas; a value must fit at least one subschema of each list."""
    yield from (schema[key] for key in ("anyOf", "oneOf") if schema.get(key))
    yield from ([part] for part in schema.get("allOf", ()))


def _child(schema: object, key: str | int) -> object:
    """Return the schema of a member of an object or a list; True if it may be anything."""
    if not isinstance(schema, Mapping):
        return True
    definition = cast("_SchemaView", schema)
    if isinstance(key, str):
        kind, properties = "object", cast("_SchemaView", definition.get("properties", {}))
        others = "patternProperties" in definition or definition.get("additionalProperties", True)
        member = properties.get(key, others)
    else:
        kind, leading = "array", cast("list[object]", definition.get("prefixItems", []))
        member = leading[key] if key < len(leading) else definition.get("items", True)
    combined = [
        {"anyOf": [_child(option, key) for option in options if kind in _types(option)]}
        for options in _alternatives(definition)
    ]
    return {"allOf": [member, *combined]} if combined else member
