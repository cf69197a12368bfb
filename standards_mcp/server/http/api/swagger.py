"""``/docs``: the REST API as a page, by Swagger UI."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from importlib_metadata import PackageNotFoundError, distribution
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from standards_mcp.server.http.start_page import html_page

_PACKAGE: Final = "flask-swagger-ui"
# Addresses are relative, so that the page works below the path of a proxy, too.
_STYLE: Final = '<link rel="stylesheet" href="docs/assets/swagger-ui.css">'
_BODY: Final = """\
<div id="page"></div>
<script src="docs/assets/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>"""
_START: Final = (
    'SwaggerUIBundle({url: "openapi.json", dom_id: "#page", tryItOutEnabled: true,'
    " displayRequestDuration: true});\n"
)
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline';"
    " frame-ancestors 'none'"
)


def docs_routes() -> list[BaseRoute]:
    """Return the routes of the page; without its package, it says what to install."""
    try:
        # Its files are all that is used: importing it would import Flask.
        folder = Path(str(distribution(_PACKAGE).locate_file("flask_swagger_ui/dist")))
    except PackageNotFoundError:
        return [Route("/docs", _missing, methods=["GET"])]
    return [
        Route("/docs", _page, methods=["GET"]),
        Route("/docs/start.js", _start, methods=["GET"]),
        Mount("/docs/assets", StaticFiles(directory=folder)),
    ]


async def _page(_: Request) -> Response:
    page = html_page("Tools of standards-mcp", _STYLE, _BODY)
    return HTMLResponse(page, headers={"content-security-policy": _POLICY})


async def _start(_: Request) -> Response:
    return Response(_START, media_type="text/javascript")


async def _missing(_: Request) -> Response:
    raise HTTPException(404, f"this page needs {_PACKAGE}, which the server's admin can install")
