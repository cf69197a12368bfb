"""Gives up a call that takes too long."""

from __future__ import annotations

from typing import Any

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.errors import TimedOutError


async def within_deadline(call: Call, call_next: CallNext) -> Any:
    """Answer the call within its timeout; waiting for a slot counts, waiting for a user does not.

    Raises:
        TimedOutError: There was no answer in time.
    """
    seconds = call.limits.timeout
    with call.context.within(seconds):
        return await call_next(call)
    raise TimedOutError(
        f"{call.item.published} did not answer within {seconds:g} s. Try again with a smaller "
        "request, or raise its timeout in the configuration."
    )
