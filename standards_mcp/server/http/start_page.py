"""``/``: a page for browsers, and an answer for programs, that name the paths of the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from standards_mcp.config.models.http import HttpSettings

from .guards import MCP

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_STYLE: Final = """\
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: auto; padding: 1rem; }
</style>"""
# Addresses are relative, so that the page works below the path of a proxy, too.
_BODY: Final = """\
<h1>standards-mcp</h1>
<p>MCP clients connect to <code>{mcp}</code> on this host.</p>
<ul>
{links}
</ul>"""


def start_routes(settings: HttpSettings) -> list[BaseRoute]:
    """Return the routes of ``/`` and ``/favicon.ico``."""
    pages = {"/health": "the version and the state of the service"}
    if settings.rest:
        pages["/docs"] = "the tools as a REST API"
    if settings.admin:
        pages["/admin"] = "what the service does, and switches for its tools"
    return [
        Route("/", _start(pages), methods=_METHODS),
        Route("/favicon.ico", _no_icon, methods=["GET"]),
    ]


def _start(pages: dict[str, str]) -> Callable[[Request], Awaitable[Response]]:
    links = "\n".join(
        f'<li><a href="{path[1:]}">{path}</a>: {about}</li>' for path, about in pages.items()
    )
    page = html_page("standards-mcp", _STYLE, _BODY.format(mcp=MCP, links=links))

    async def start(request: Request) -> Response:
        is_browser = "text/html" in request.headers.get("accept", "")
        if request.method in ("GET", "HEAD") and is_browser:
            return HTMLResponse(page, headers={"content-security-policy": _POLICY})
        raise HTTPException(404, f"nothing is here; MCP is at {MCP}. See also: {', '.join(pages)}")

    return start


async def _no_icon(_: Request) -> Response:
    return Response(status_code=204, headers={"cache-control": "max-age=86400"})


def html_page(title: str, style: str, body: str) -> str:
    """Return a page of HTML."""
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
{style}
</head>
<body>
{body}
</body>
</html>
"""
