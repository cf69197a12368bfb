"""Checks the arguments of a call against the schema of what is called."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.contributions.arguments.coercion import decoded_texts
from standards_mcp.contributions.arguments.mistakes import schema_errors
from standards_mcp.contributions.arguments.schemas import plain_object, schema_validator
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
    schema, most = call.item.arguments.schema, call.limits.max_argument_values
    count, commas = _counted(call.arguments, most)
    if count <= most < count + commas:
        # Only now, since it takes longer: most texts are for arguments that are texts.
        texts = decoded_texts(dict(call.arguments), plain_object(schema))
        count += sum(text.count(",") for text in texts)
    if count > most:
        raise InvalidInputError(
            f"the arguments have more than {most:,} values; send fewer in one call, or let the"
            " administrator raise max_argument_values in [tools]"
        )
    if call.context.is_exact and (
        mistakes := schema_errors(schema_validator(schema), call.arguments)
    ):
        raise InvalidInputError(mistakes)
    return await call.item.arguments.validate(call.arguments)


def _counted(arguments: Mapping[str, Any], most: int) -> tuple[int, int]:
    """Return the number of values, and of commas in texts that may be lists or objects.

    Counting ends with more than *most* values.

    Raises:
        InvalidInputError: A number is infinite, as parsers read ``1e999``.
    """
    count = commas = 0
    left: list[object] = [dict(arguments)]
    while left and count <= most:
        value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInputError(
                "an argument has a number that is not finite, such as 1e999 or NaN"
            )
        if isinstance(value, str):
            commas += value.count(",") if _JSON.fullmatch(value) else 0
        elif isinstance(value, dict | list | tuple):
            held = cast("dict[str, object] | list[object]", value)
            count += len(held)
            if count <= most:
                left += held.values() if isinstance(held, dict) else held
    return count, commas
