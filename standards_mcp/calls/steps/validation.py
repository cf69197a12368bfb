"""Checks the arguments of a call against the schema of what is called."""

from __future__ import annotations

from typing import Any

from standards_mcp.calls.call import Call, CallNext


async def validate(call: Call, call_next: CallNext) -> Any:
    """Answer the call with validated arguments.

    Raises:
        InvalidInputError: They do not fit.
    """
    call.keywords = await call.item.arguments.validate(call.arguments)
    return await call_next(call)
