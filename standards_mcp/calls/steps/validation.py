"""Checks the arguments of a call against the schema of what is called."""

from __future__ import annotations

from typing import Any

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.contributions.arguments.mistakes import schema_errors
from standards_mcp.contributions.arguments.schemas import schema_validator
from standards_mcp.errors import InvalidInputError


async def validate(call: Call, call_next: CallNext) -> Any:
    """Answer the call with validated arguments.

    Raises:
        InvalidInputError: They do not fit.
    """
    if call.context.is_exact:
        schema = call.item.arguments.schema
        if mistakes := schema_errors(schema_validator(schema), call.arguments):
            raise InvalidInputError(mistakes)
    call.keywords = await call.item.arguments.validate(call.arguments)
    return await call_next(call)
