"""The error for a rate limit."""

from __future__ import annotations

import math

from standards_mcp import ToolError


class LimitedError(ToolError):
    """A rate limit forbids a request now.

    Args:
        limit: The limit, as the beginning of the message.
        seconds: Time until the next request is allowed.
    """

    error_type = "rate_limited"

    def __init__(self, limit: str, seconds: float) -> None:
        wait = max(1, math.ceil(seconds))
        super().__init__(f"{limit}. Try again in {wait} s.", retry_after=wait)
