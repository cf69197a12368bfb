"""``/mcp/server-card``: what registries and clients may know before they connect (SEP-2127).

The card says who serves, where and in which versions. It has no tools and no settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .guards import CARD

_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_DESCRIPTION: Final = "Educational standards, and the tools of the plugins of this service."
_HEADERS: Final = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "Content-Type, If-None-Match",
    "access-control-expose-headers": "ETag",
    "cache-control": "public, max-age=3600",
}


def card_route(url: str, version: str, title: Callable[[], str]) -> Route:
    """Return the route of the card.

    Args:
        url: The public address of the service.
        title: Returns the title for callers without a token, as in ``server/discover``.
    """

    async def answer(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_HEADERS)
        body = json.dumps(_card(url, version, title())).encode()
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = _HEADERS | {"etag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body, 200, headers, "application/mcp-server-card+json")

    return Route(CARD, answer, methods=["GET", "OPTIONS"])


def _card(url: str, version: str, title: str) -> dict[str, Any]:
    domain = (urlsplit(url).hostname or "").split(".")
    versions = [*MODERN_PROTOCOL_VERSIONS, *HANDSHAKE_PROTOCOL_VERSIONS]
    return {
        "$schema": _SCHEMA,
        "name": f"{'.'.join(reversed(domain))}/standards-mcp",
        "version": version,
        "description": _DESCRIPTION,
        "title": title or "standards-mcp",
        "remotes": [
            {
                "type": "streamable-http",
                "url": url,
                "supportedProtocolVersions": sorted(versions, reverse=True),
            }
        ],
    }
