"""Another MCP server that is reached by streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

_HTTP_SECONDS: Final = 30.0
_STREAM_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where it is.

    Attributes:
        headers: Sent with every request.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    ending: str = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Any]:
        """Return the streams of a new connection."""
        timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
        async with (
            httpx2.AsyncClient(headers=dict(self.headers), timeout=timeout) as client,
            streamable_http_client(self.url, http_client=client) as streams,
        ):
            yield streams
