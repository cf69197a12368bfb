"""Draft atoms from the list items of a resume."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .primitives import hash64, lower
from .records import Atom

_HEADING: Final = re.compile(r"#+ (?P<text>.*\S)")
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022\u2023\u25aa\u2013]|\d+[.)])\s+(?P<text>.*\S)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_CONTINUATION: Final = re.compile(r"\s+\S|[a-z0-9(]")  # PDFs do not indent the lines of an item


def draft_atoms(markdown: str) -> Iterator[Atom]:
    """Yield an unverified atom for each distinct list item outside of code.

    The title of an atom is the heading above the item. The id is a hash: ids occur in the audit
    log, which must not contain words of a resume.
    """
    for heading, claim in dict.fromkeys(_items(markdown)):
        yield Atom(
            atom_id=f"atom-{hash64(heading + claim)}",
            domain=lower(heading),
            title=heading,
            claim=claim,
            evidence_refs=("resume",),
        )


def _items(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield the list items, each with the heading above it."""
    heading, is_code, item = "", False, list[str]()
    for line in [*markdown.splitlines(), ""]:
        begins = [pattern.match(line) for pattern in (_FENCE, _HEADING, _ITEM)]
        if item and _CONTINUATION.match(line) and not any(begins):
            item.append(line.strip())
            continue
        if item:
            yield heading, " ".join(item)
            item = []
        fence, title, entry = begins
        if fence:
            is_code = not is_code
        elif title and not is_code:
            heading = title["text"]
        elif entry and not is_code:
            item = [entry["text"]]
