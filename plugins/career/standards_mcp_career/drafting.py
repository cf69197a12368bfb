"""Turns the list items of a resume into atoms that a person is to check."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .domain.records import Atom
from .domain.text import hash64, lower

_HEADING: Final = re.compile(r"#+ (?P<text>.*\S)")
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022\u2023\u25aa\u2013]|\d+[.)])\s+(?P<text>.*\S)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_MORE: Final = re.compile(r"\s+\S|[a-z0-9(]")


def draft_atoms(markdown: str) -> Iterator[Atom]:
    """Yield an atom that is not verified for each list item outside of code.

    Its title is the heading above. Its id is a hash: events of the audit log have ids, and none
    may have words of a resume.
    """
    for heading, claim in _items(markdown):
        yield Atom(
            atom_id=f"atom-{hash64(heading + claim)}",
            domain=lower(heading),
            title=heading,
            claim=claim,
            evidence_refs=("resume",),
        )


def _items(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield each list item, each once, with the heading above it."""
    heading, is_code = "", False
    known, item = dict[tuple[str, str], None](), list[str]()
    for line in [*markdown.splitlines(), ""]:
        if item and not is_code and _goes_on(line):
            item.append(line.strip())
            continue
        if item:
            known[heading, " ".join(item)] = None
            item = []
        if _FENCE.match(line):
            is_code = not is_code
        elif is_code:
            continue
        elif found := _HEADING.fullmatch(line):
            heading = found["text"]
        elif found := _ITEM.fullmatch(line):
            item = [found["text"]]
    yield from known


def _goes_on(line: str) -> bool:
    """Tell whether a line goes on with the item above: PDFs break items without indenting them."""
    return bool(_MORE.match(line)) and not any(
        each.match(line) for each in (_HEADING, _ITEM, _FENCE)
    )


def as_records(atoms: Iterable[Atom]) -> dict[str, list[dict[str, Any]]]:
    """Return atoms as ``career import`` reads them."""
    rows = [
        {
            "atom_id": each.atom_id,
            "domain": each.domain,
            "title": each.title,
            "claim": each.claim,
            "tags": list(each.tags),
            "verified": each.verified,
            "evidence_refs": list(each.evidence_refs),
        }
        for each in atoms
    ]
    return {"atoms": rows}


def as_yaml(atoms: Iterable[Atom]) -> str:
    """Return atoms as a file for ``career import``."""
    from ruamel.yaml import YAML  # noqa: PLC0415  - only drafts need it

    yaml: Any = YAML()
    yaml.width = 100
    text = io.StringIO()
    yaml.dump(as_records(atoms), text)
    return text.getvalue()
