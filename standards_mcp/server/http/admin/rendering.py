"""Makes pages of templates. What plugins and requests say is text in them, never markup."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from standards_mcp._utils.text import readable

from . import charts

_FOLDER: Final = Path(__file__).parent / "templates"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # With none at all, browsers would not say in a POST where it comes from.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}

_UNITS: Final = (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1))


class Templates:
    """Renders the templates beside this module.

    Args:
        always: What every template knows.
    """

    def __init__(self, **always: Any) -> None:
        self._environment = Environment(
            autoescape=True,
            loader=FileSystemLoader(_FOLDER),
            undefined=StrictUndefined,
            finalize=_plain,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "breakable": _breakable,
            "duration": charts.duration,
            "span": _span,
        }
        self._always = always
        self._style = (_FOLDER / "style.css").read_text(encoding="utf-8")

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        now = f"{datetime.now(UTC):%H:%M:%S}"
        text = self._environment.get_template(template).render(self._always, now=now, **values)
        return HTMLResponse(text, status, _HEADERS)

    def style(self) -> Response:
        """Return the style sheet."""
        headers = _HEADERS | {"cache-control": "private, max-age=300"}
        return Response(self._style, headers=headers, media_type="text/css")


def _span(seconds: int) -> str:
    """Return a long time in its two largest units."""
    for name, size, smaller, part in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {name} {seconds % size // part} {smaller}"
    return f"{seconds} s"


def _breakable(name: str) -> Markup:
    """Let a long name continue in the next line, where it is read as parts."""
    return escape(readable(name)).replace("_", Markup("_<wbr>"))


def _plain(value: object) -> object:
    """Show characters that would steer what is around them, such as the direction of the text."""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
