"""Checks the arguments of a call against the schema of what is called."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.contributions.arguments.mistakes import schema_errors
from standards_mcp.contributions.arguments.schemas import schema_validator
from standards_mcp.errors import InvalidInputError


async def validate(call: Call, call_next: CallNext) -> Any:
    """Answer the call with validated arguments.

    Raises:
        InvalidInputError: They do not fit.
    """
    if not _are_finite(call.arguments):
        raise InvalidInputError("an argument has a number that is not finite, such as 1e999 or NaN")
    if call.context.is_exact:
        schema = call.item.arguments.schema
        if mistakes := schema_errors(schema_validator(schema), call.arguments):
            raise InvalidInputError(mistakes)
    call.keywords = await call.item.arguments.validate(call.arguments)
    return await call_next(call)


def _are_finite(arguments: Mapping[str, Any]) -> bool:
    """Tell whether all numbers are such as JSON has; parsers make an infinity of ``1e999``."""
    left: list[object] = [arguments]
    while left:
        value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if isinstance(value, Mapping):
            left += cast("Mapping[str, object]", value).values()
        elif isinstance(value, list | tuple):
            left += cast("list[object]", value)
    return True
