"""From a Python function to a tool's input schema and its validated arguments."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from standards_mcp._utils.text import did_you_mean
from standards_mcp.catalog.base import FilterExpression
from standards_mcp.catalog.filters import combine
from standards_mcp.errors import InvalidInputError
from standards_mcp.plugin import CallContext, Filter, Tool

from .schemas import Schema, SchemaError, portable_input_schema, signature_of

_NAMED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_FILTER_ARGUMENT: Final = "filter"
_MAX_SENTENCES: Final = 5
_MAX_SENTENCE: Final = 300


class Arguments(Protocol):
    """The arguments of one tool: their schema and their validation."""

    @property
    def schema(self) -> Schema:
        """The portable input schema."""
        ...

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function.

        Raises:
            InvalidInputError: In one short sentence for each argument that is wrong.
            ToolError: A filter cannot be put together.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelArguments:
    """Arguments derived from a function's signature and the registered filters.

    Attributes:
        filters: None for a tool that does not accept filters.
    """

    model: type[BaseModel] = field(repr=False)
    names: tuple[str, ...]
    filters: tuple[Filter, ...] | None
    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments, with the filters combined. See `Arguments.validate`."""
        try:
            model = self.model.model_validate(_given(arguments, self.schema))
        except ValidationError as exc:
            items = exc.errors(include_url=False, include_input=False)
            mistakes = [(item["loc"], _plain(item["type"], item["msg"])) for item in items]
            raise InvalidInputError(_sentences(mistakes)) from None
        count = len(self.schema["properties"])
        values = [getattr(model, _field_name(index)) for index in range(count)]
        keywords = dict(zip(self.names, values, strict=False))
        if self.filters is not None:
            keywords[_FILTER_ARGUMENT] = await _expression(self.filters, values[len(self.names) :])
        return keywords


@dataclass(frozen=True, slots=True)
class SchemaArguments:
    """Arguments described by a hand-written JSON Schema."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as they are, once they fit. See `Arguments.validate`."""
        import jsonschema  # noqa: PLC0415  - costs start-up time, and most tools have signatures

        given = _given(arguments, self.schema)
        if mistakes := schema_mistakes(jsonschema.Draft202012Validator(self.schema), given):
            raise InvalidInputError(mistakes)
        return given


def read_arguments(tool: Tool, filters: Iterable[Filter] = ()) -> Arguments:
    """Return the arguments of a tool, extended by *filters* where it accepts them.

    Raises:
        SchemaError: They cannot be described to every client.
    """
    if tool.input_schema is not None:
        if tool.accepts_filters:
            raise SchemaError("a tool with a hand-written input schema cannot accept filters")
        schema = portable_input_schema(tool.input_schema)  # which bounds what is checked next
        check_json_schema(tool.input_schema)
        return SchemaArguments(schema)
    context = (name,) if (name := context_argument(tool.function)) else ()
    if not tool.accepts_filters:
        return _read_signature(tool.function, context)
    extra = tuple(filters)
    own = _read_signature(tool.function, (_FILTER_ARGUMENT, *context), extra)
    return replace(own, filters=extra)


def filter_arguments(filters: tuple[Filter, ...]) -> Arguments:
    """Return filters as the arguments of a tool that has no others.

    Raises:
        SchemaError: They cannot be described to every client.
    """

    def only(filter: FilterExpression | None) -> None:  # noqa: A002
        del filter

    return read_arguments(Tool(name="filters", function=only, accepts_filters=True), filters)


def read_function(function: Callable[..., Any], given: Sequence[str] = ()) -> Arguments:
    """Return the arguments of a function that clients call with named values.

    Args:
        given: The names of arguments that the host gives.

    Raises:
        SchemaError: They cannot be described to every client.
    """
    return _read_signature(function, given)


def context_argument(function: Callable[..., Any]) -> str:
    """Return the name of the argument that takes the `CallContext`, or an empty string.

    Raises:
        SchemaError: The function is not async, and so cannot use it.
    """
    parameters = signature_of(function).parameters.values()
    name = next((each.name for each in parameters if each.annotation is CallContext), "")
    if name and not inspect.iscoroutinefunction(function):
        raise SchemaError(
            f"its argument {name!r} is a CallContext, so it must be an async function"
        )
    return name


def _read_signature(
    function: Callable[..., Any], given: Sequence[str] = (), extra: tuple[Filter, ...] = ()
) -> ModelArguments:
    parameters = _parameters(function, given)
    if clash := {item.name for item in extra} & parameters.keys():
        raise SchemaError(f"filter {min(clash)!r} has the name of one of its arguments")
    fields = [_field(parameter) for parameter in parameters.values()]
    try:
        fields += [_filter_field(item) for item in extra]
        definitions: dict[str, Any] = {_field_name(i): item for i, item in enumerate(fields)}
        config = ConfigDict(extra="forbid")
        model = create_model("Arguments", __config__=config, **definitions)
        schema = portable_input_schema(model.model_json_schema(by_alias=True))
    except SchemaError:
        raise
    except Exception as exc:
        raise SchemaError(f"its arguments cannot be described: {exc}".splitlines()[0]) from exc
    return ModelArguments(model, tuple(parameters), None, schema)


def schema_mistakes(validator: Any, arguments: Mapping[str, Any]) -> str:
    """Return what a JSON Schema validator finds wrong with *arguments*, or an empty string."""
    mistakes = [
        (error.path or ("arguments",), error.message.replace(repr(error.instance), "the value"))
        for error in validator.iter_errors(arguments)
    ]
    return _sentences(mistakes)


def _parameters(function: Callable[..., Any], given: Sequence[str]) -> dict[str, inspect.Parameter]:
    parameters = dict(signature_of(function).parameters)
    for name in given:
        if parameters.pop(name, None) is None:
            raise SchemaError(f"its function has no argument {name!r}, which the host gives it")
    for parameter in parameters.values():
        if parameter.kind not in _NAMED_KINDS:
            raise SchemaError(f"its argument {parameter.name!r} cannot be given by name")
        if parameter.annotation is inspect.Parameter.empty:
            raise SchemaError(f"its argument {parameter.name!r} has no annotation")
    return parameters


def check_json_schema(schema: Mapping[str, Any]) -> None:
    """See that *schema* is a JSON Schema.

    Raises:
        SchemaError: It is none.
    """
    import jsonschema  # noqa: PLC0415  - see `SchemaArguments.validate`

    validator: Any = jsonschema.Draft202012Validator
    try:
        validator.check_schema(dict(schema), format_checker=validator.FORMAT_CHECKER)
    except Exception as exc:
        what = getattr(exc, "message", None) or str(exc)
        raise SchemaError(f"its input schema is not a JSON Schema: {_short(what)}") from exc


def _field(parameter: inspect.Parameter) -> tuple[Any, Any]:
    default, annotation = parameter.default, parameter.annotation
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], inspect.Parameter.empty
    default = ... if default is inspect.Parameter.empty else default
    return annotation, Field(default, alias=parameter.name)


def _filter_field(item: Filter) -> tuple[Any, Any]:
    return item.annotation | None, Field(None, alias=item.name, description=item.description)


async def _expression(filters: Iterable[Filter], values: Iterable[Any]) -> FilterExpression | None:
    pairs = zip(filters, values, strict=True)
    return combine(
        *[await filter_expression(item, value) for item, value in pairs if value is not None]
    )


async def filter_expression(item: Filter, value: Any) -> FilterExpression | None:
    """Return the expression of a filter for a value."""
    found = item.to_expression(value)
    return await found if inspect.isawaitable(found) else found


def _field_name(index: int) -> str:
    """Name model fields by position: arguments may bear names that pydantic keeps for itself."""
    return f"argument_{index}"


def _given(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the arguments that were given: null for an optional one means that it was not."""
    properties = schema["properties"]
    refuse_unknown(arguments, properties)
    required = schema.get("required", ())
    return {
        name: _decoded(value, properties[name])
        for name, value in arguments.items()
        if value is not None or name in required
    }


def refuse_unknown(arguments: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse arguments that the schema does not have.

    Raises:
        InvalidInputError: With the nearest argument that it has.
    """
    names = tuple(known)
    for name in arguments:
        if name not in names:
            expected = ", ".join(names) or "none"
            hint = did_you_mean(name, names)
            raise InvalidInputError(f"{name}: unknown argument{hint or f'; known: {expected}'}")


def _decoded(value: Any, schema: Any) -> Any:
    """Decode a list or an object that a client sent as JSON text, as some clients do."""
    kind = cast("Schema", schema).get("type") if isinstance(schema, dict) else None
    if isinstance(value, str) and kind in ("array", "object"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _sentences(mistakes: Sequence[tuple[Iterable[Any], str]]) -> str:
    shown = [
        _short(f"{'.'.join(map(str, path))}: {message}")
        for path, message in mistakes[:_MAX_SENTENCES]
    ]
    if more := len(mistakes) - len(shown):
        shown.append(f"and {more} more")
    return "; ".join(shown)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SENTENCE else f"{text[:_MAX_SENTENCE]} ..."


def _plain(kind: str, message: str) -> str:
    if kind == "missing":
        return "this argument is required"
    message = message.removeprefix("Value error, ").removeprefix("Input ").split(", unable")[0]
    return message[:1].lower() + message[1:]
