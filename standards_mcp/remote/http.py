"""The transport to an MCP server over streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import httpx2
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client

from standards_mcp._utils.text import describe_exception

from .connection import Transport

_HTTP_SECONDS: Final = 30.0
_STREAM_SECONDS: Final = 300.0
_SDK_MESSAGES: Final = ("Server returned an error response", "Not Found", "Session terminated")
"""The SDK's messages for an HTTP error status."""

_ADVICE: Final = {
    HTTPStatus.UNAUTHORIZED: "check the token in headers",
    HTTPStatus.FORBIDDEN: "check the token in headers, and its permissions",
    HTTPStatus.NOT_FOUND: "check url",
    HTTPStatus.METHOD_NOT_ALLOWED: "check url",
    HTTPStatus.TOO_MANY_REQUESTS: "try again later",
}


@dataclass
class HttpTransport(Transport):
    """One connection to an address.

    Attributes:
        headers: Sent with every request.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    _status: int = 0

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Any]:
        """Return the streams of the connection. See `Transport`."""
        timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
        async with (
            httpx2.AsyncClient(
                headers=dict(self.headers), timeout=timeout, event_hooks={"response": [self._note]}
            ) as client,
            streamable_http_client(self.url, http_client=client) as streams,
        ):
            yield streams

    def explain(self, error: BaseException) -> str:
        """Return the cause of an error with a remedy. See `Transport`."""
        if isinstance(error, httpx2.UnsupportedProtocol):
            return "its url must begin with http:// or https://"
        if isinstance(error, httpx2.TransportError):
            return f"it cannot be reached ({describe_exception(error)}); check url and that it runs"
        if not isinstance(error, MCPError):
            return ""
        if error.message in _SDK_MESSAGES and self._status >= HTTPStatus.BAD_REQUEST:
            return f"it answered with HTTP status {_describe_status(self._status)}"
        is_page = error.message.startswith("Unexpected content type")
        return f"{error.message}; check url, which leads to no MCP server" if is_page else ""

    async def _note(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self._status = response.status_code


def _describe_status(status: int) -> str:
    try:
        standard = HTTPStatus(status)
    except ValueError:
        return str(status)
    is_its_fault = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    fallback = "ask its administrator" if is_its_fault else "check url and headers"
    return f"{status} {standard.phrase}; {_ADVICE.get(standard, fallback)}"
