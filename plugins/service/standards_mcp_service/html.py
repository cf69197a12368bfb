"""Parts of all pages of the service: headers, the style sheet, and escaped templates."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from standards_mcp.commands import printable
from standards_mcp.transports import Host

from .guards import PRIVATE_PAGE

PAGE_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    **PRIVATE_PAGE,
}
_STYLE_SHEET: Final = Path(__file__).parent / "style.css"


def templates_in(folder: Path, host: Host) -> Environment:
    """Return the templates of a folder. All texts are escaped, and secrets in them masked."""

    def safe_text(value: object) -> object:
        # Control characters become visible, such as the ones for right-to-left text.
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        text = printable(host.mask(value).replace("\r\n", "\n"))
        return text.encode("utf-8", "backslashreplace").decode()  # surrogates

    return Environment(
        autoescape=True,
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        finalize=safe_text,
        trim_blocks=True,
        lstrip_blocks=True,
    )


async def style_sheet(_: Request) -> Response:
    """Return the style sheet."""
    headers = PAGE_HEADERS | {"cache-control": "private, max-age=300"}
    return Response(_STYLE_SHEET.read_bytes(), headers=headers, media_type="text/css")
