"""Make one HTML document of each view, from the scripts and the style in ``web/``.

A document needs no network and no build: clients show it in a frame without an origin. Its policy
allows exactly its own script and style, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

_COMMON: Final = ("bridge.js", "elements.js", "standard.js")
_STARTS: Final = {
    "results": (("results.js",), 'start("results", resultsPage);'),
    "standard": (
        (),
        'start("standard", (client, data) => show(...standardPages(client, data)));',
    ),
    "tree": (("tree.js",), 'start("tree", treePage);'),
}
NAMES: Final = tuple(_STARTS)


@cache
def page(name: str) -> str:
    """Return the document of a view, such as ``results``."""
    scripts, start = _STARTS[name]
    script = "\n".join(['"use strict";', *map(_text, (*_COMMON, *scripts)), start])
    style = _text("base.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "font-src https: data:",  # the client's own fonts
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Educational standards</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<main></main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _text(name: str) -> str:
    return (files("standards_mcp_views") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
