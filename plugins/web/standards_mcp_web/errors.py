"""What keeps a search from being answered, beside what every plugin raises."""

from __future__ import annotations

import math

from standards_mcp import ToolError


class LimitedError(ToolError):
    """The provider must not be asked now.

    Args:
        limit: Whose limit it is, as a part of a sentence.
        seconds: How long to wait.
    """

    error_type = "rate_limited"

    def __init__(self, limit: str, seconds: float) -> None:
        wait = max(1, math.ceil(seconds))
        super().__init__(f"{limit}. Try again in {wait} s.", retry_after=wait)
