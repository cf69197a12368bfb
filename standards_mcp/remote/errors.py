"""What goes wrong with another server."""

from __future__ import annotations

from pydantic import ValidationError

from standards_mcp.errors import ApiError


class RefusedError(ApiError):
    """A server answered a request with an error of the protocol.

    Attributes:
        reason: The message of that error.
        data: What it gave along.
    """

    def __init__(self, title: str, reason: str, data: object = None) -> None:
        super().__init__(f"{title} refused it: {reason}")
        self.reason = reason
        self.data = data


def why_not_valid(error: ValidationError) -> str:
    """Return the first thing that is wrong with an answer, without what else it holds."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}"
