"""Checks the filters of plugins, and attributes their failures to the right plugin."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.text import describe_exception
from standards_mcp.errors import FilterFailedError, InvalidInputError, ServiceError, ToolError
from standards_mcp.filters import FilterExpression, parse_filter
from standards_mcp.plugin import Filter

from .arguments.schemas import ARGUMENT_NAME
from .arguments.signatures import filter_expression

_FILTER_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def filter_error(item: object) -> str:
    """Return what is wrong with a filter, or an empty string."""
    if not isinstance(item, Filter):
        return f"register_filters returned a {type(item).__name__}"
    if not _FILTER_NAME.fullmatch(item.name) or not ARGUMENT_NAME.fullmatch(item.name):
        return f"{item.name!r} is not a valid filter name"
    if not item.description.strip():
        return f"filter {item.name!r} has no description"
    if not callable(item.to_expression):
        return f"filter {item.name!r}: its to_expression is not a function"
    try:
        _ = item.annotation | None
    except TypeError:
        return f"filter {item.name!r}: its annotation is not a type"
    return ""


def own_filter(plugin: str, item: Filter) -> Filter:
    """Return a filter whose failures are attributed to its plugin, not to the tool that uses it.

    A refused value stays an `InvalidInputError`, and a `ToolError` or `ServiceError` passes. Any
    other error becomes a `FilterFailedError`.
    """

    def parse(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise
        except BaseException as exc:
            if is_from_outside(exc):
                raise
            raise _failure(plugin, item, exc) from exc

    async def to_expression(value: Any) -> FilterExpression | None:
        return await _expression(plugin, item, value)

    # Pydantic runs the plugin's validators among the tool's arguments, so they are wrapped, too.
    annotation: Any = Annotated[item.annotation | None, WrapValidator(parse)]
    return replace(item, annotation=annotation, to_expression=to_expression)


async def _expression(plugin: str, item: Filter, value: Any) -> FilterExpression | None:
    try:
        expression = await filter_expression(item, value)
    except InvalidInputError as exc:
        raise InvalidInputError(f"{item.name}: {exc} (plugin {plugin!r})") from exc
    except (ServiceError, ToolError, asyncio.CancelledError):
        raise  # for the client, see standards_mcp.calls.steps.errors
    except BaseException as exc:
        if is_from_outside(exc):
            raise
        raise _failure(plugin, item, exc) from exc
    # Checked here, because the tool would be blamed for an expression that is refused later.
    try:
        parse_filter(expression)
    except Exception as exc:
        raise _failure(plugin, item, exc) from exc
    return expression


def _failure(plugin: str, item: Filter, cause: BaseException) -> FilterFailedError:
    return FilterFailedError(plugin, f"filter {item.name!r}: {describe_exception(cause)}")
