"""Turns the list items of a resume into atoms that a person is to check."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final

from .domain.records import Atom
from .domain.text import lower, tokens

_HEADING: Final = re.compile(r"#+ (?P<text>.*\S)")
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022\u2023\u25aa\u2013]|\d+[.)])\s+(?P<text>.*\S)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_WORDS_OF_ID: Final = 3


def draft_atoms(markdown: str) -> Iterator[Atom]:
    """Yield an atom that is not verified for each list item outside of code.

    Its title is the heading above, its id is of the first words and a number.
    """
    heading, number, is_code = "", 0, False
    for line in markdown.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif is_code:
            continue
        elif found := _HEADING.fullmatch(line):
            heading = found["text"]
        elif found := _ITEM.fullmatch(line):
            number += 1
            words = "-".join(tokens(found["text"])[:_WORDS_OF_ID])
            yield Atom(
                atom_id=f"{words or 'atom'}-{number}",
                domain=lower(heading),
                title=heading,
                claim=found["text"],
                evidence_refs=("resume",),
            )


def as_yaml(atoms: list[Atom]) -> str:
    """Return atoms as a file for ``career import``."""
    from ruamel.yaml import YAML  # noqa: PLC0415  - only drafts need it

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
    yaml: Any = YAML()
    yaml.width = 100
    text = io.StringIO()
    yaml.dump({"atoms": rows}, text)
    return text.getvalue()
