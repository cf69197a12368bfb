"""Make one HTML document of each view, from the scripts and the style in ``web/``.

A document needs no network and no build: clients show it in a sandboxed frame. Its policy allows
exactly its own script and style, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
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
    "check": (("marks.js", "check.js"), 'start("check", checkPage);'),
    "comparison": (("marks.js", "comparison.js"), 'start("comparison", comparisonPage);'),
    "coverage": (("coverage.js",), 'start("coverage", coveragePage);'),
    "tree": (("tree.js",), 'start("tree", treePage);'),
}
NAMES: Final = tuple(_STARTS)
TOOLS: Final = (
    "browse_standards",
    "find_relevant_standards",
    "get_related_standards",
    "get_standard_details",
)
"""The tools that the page in a browser may call; none of them changes anything."""


@cache
def page(name: str) -> str:
    """Return the document of a view, such as ``results``."""
    scripts, start = _STARTS[name]
    text, policy = _document((*_COMMON, *scripts), start, ("base.css",), "font-src https: data:")
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    return text.replace("<meta name", f"{meta}<meta name", 1)


def explore_page(tools: Iterable[str] = TOOLS) -> tuple[str, str]:
    """Return the document of the page in a browser, and the policy for its header.

    Args:
        tools: The tools of the page that its user may call.
    """
    text, policy = _explore_document()
    return text.replace("<body>", f'<body data-tools="{" ".join(tools)}">', 1), policy


@cache
def _explore_document() -> tuple[str, str]:
    own = ("browse.js", "compare.js", "progression.js", "server.js", "explore.js")
    scripts = (*_COMMON, "results.js", "tree.js", *own)
    rules = "connect-src 'self'; frame-ancestors 'none'"
    return _document(scripts, "explorePage();", ("base.css", "explore.css"), rules)


def _document(
    scripts: Sequence[str], start: str, styles: Sequence[str], rules: str
) -> tuple[str, str]:
    """Return a document and its policy, which allows its own script and style and *rules*."""
    script = "\n".join(['"use strict";', *map(_text, scripts), start])
    style = "".join(map(_text, styles))
    own = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Educational standards</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<header></header>\n<main></main>\n<script>{script}</script>\n</body>\n</html>\n"
    )
    return text, f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'; {rules}"


def _text(name: str) -> str:
    return (files("standards_mcp_views") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
