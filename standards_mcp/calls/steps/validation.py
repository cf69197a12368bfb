"""Checks the arguments of a call against the schema of what is called."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.contributions.arguments.mistakes import schema_errors
from standards_mcp.contributions.arguments.schemas import schema_validator
from standards_mcp.errors import InvalidInputError, ToolError

_JSON: Final = re.compile(r"\s*[\[{].*[\]}]\s*", re.DOTALL)


class Validation:
    """Validates the arguments of calls; a refused call counts against the rate limit, too.

    Args:
        count: Counts a call.
    """

    def __init__(self, count: Callable[[Call], Awaitable[None]]) -> None:
        self._count = count

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call with validated arguments.

        Raises:
            InvalidInputError: They do not fit.
            RateLimitedError: They do not fit, and the caller has called too often.
        """
        try:
            call.keywords = await _keywords(call)
        except ToolError:
            await self._count(call)
            raise
        return await call_next(call)


async def _keywords(call: Call) -> dict[str, Any]:
    check_values(call.arguments, call.limits.max_argument_values)
    if call.context.is_exact:
        schema = call.item.arguments.schema
        if mistakes := schema_errors(schema_validator(schema), call.arguments):
            raise InvalidInputError(mistakes)
    return await call.item.arguments.validate(call.arguments)


def check_values(arguments: Mapping[str, Any], most: int) -> None:
    """Refuse too many values, and numbers that JSON does not have.

    Raises:
        InvalidInputError: The arguments and what they contain have more than *most* values, or one
            is infinite, as parsers read ``1e999``.
    """
    count = 0
    left: list[object] = [dict(arguments)]
    while left:
        value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInputError(
                "an argument has a number that is not finite, such as 1e999 or NaN"
            )
        if isinstance(value, str):
            # Lists and objects that were sent as text are decoded later.
            count += value.count(",") if _JSON.fullmatch(value) else 0
        elif isinstance(value, dict | list | tuple):
            held = cast("dict[str, object] | list[object]", value)
            count += len(held)
            if count <= most:
                left += held.values() if isinstance(held, dict) else held
        if count > most:
            raise InvalidInputError(
                f"the arguments have more than {most:,} values; send fewer in one call, or let the"
                " administrator raise max_argument_values in [tools]"
            )
