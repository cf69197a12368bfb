"""What goes wrong with another server."""

from __future__ import annotations

from typing import Any, Final, cast

from pydantic import ValidationError

from standards_mcp._utils.text import readable
from standards_mcp.errors import ApiError, ToolError

ERROR_TYPE: Final = "error_type"
"""The key in the data of an error that says which `ToolError` it was."""


class StartAgainError(Exception):
    """A process must be started anew before it is used, with other options."""


class RefusedError(ApiError):
    """A server answered a request with an error of the protocol.

    Attributes:
        reason: The message of that error.
        code: The number of that error.
        error_data: The data of that error.
        refused_type: That of a `ToolError`, where the server is a host of this kind, too.
    """

    def __init__(self, title: str, reason: str, code: int, data: object = None) -> None:
        reason = readable(reason)
        super().__init__(f"{title} refused it: {reason}")
        fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        self.reason = reason
        self.code = code
        self.error_data: Any = data
        self.refused_type = str(fields.get(ERROR_TYPE, ""))


class NotApprovedError(ToolError):
    """The definition of the called item changed and is not approved."""

    error_type = "disabled"  # as for other calls of what is not served


def why_not_valid(error: ValidationError) -> str:
    """Return the first thing that is wrong with an answer, without what else it holds."""
    first = error.errors(include_url=False, include_input=False)[0]
    return readable(f"{'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}")
