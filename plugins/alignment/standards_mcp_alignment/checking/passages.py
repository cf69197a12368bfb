"""Find the passages of a lesson: next to its codes, and without codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from standards_mcp_catalog import StandardRecord

from .finding import Candidate
from .quotations import Quotation, find_quotation

_ITEM: Final = r"(?:[-*\u2022#|]|\d{1,2}[.)](?=\s))"
_LIMIT: Final = re.compile(rf"\n[^\S\n]*\n|\n[^\S\n]*{_ITEM}")
"""A blank line, or the beginning of a list item, a heading or a row."""
_LINE_START: Final = re.compile(rf"\s*{_ITEM}?[\s*_`\[]*")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_LONGEST_BESIDE: Final = 1_500
"""Characters on either side of a code that may quote its standard."""
_LONGEST_WORDS: Final = 300
_LONGEST_PASSAGE: Final = 400
_LEAST_WORDS: Final = 7
_LOGISTICS: Final = re.compile(
    r"^[\W_]{0,20}(?:materials?|supplies|resources?|time|duration|date|teacher|name|class|period|room"
    r"|homework|vocabulary)\b[^:\n]{0,30}:",
    re.IGNORECASE,
)


class Passage(NamedTuple):
    """A part of a transcript."""

    text: str
    start: int
    end: int


def beside(text: str, candidate: Candidate, codes: Sequence[Candidate]) -> tuple[Passage, Passage]:
    """Return the passages before and after a code, up to a blank line or the next code."""
    low = max((each.end for each in codes if each.end <= candidate.start), default=0)
    high = min((each.start for each in codes if each.start >= candidate.end), default=len(text))
    low = max(low, candidate.start - _LONGEST_BESIDE)
    high = min(high, candidate.end + _LONGEST_BESIDE)
    line_start = text.rfind("\n", 0, candidate.start) + 1
    if _LINE_START.fullmatch(text, max(line_start, low), candidate.start) and line_start >= low:
        low = candidate.start  # a quotation follows its code if the code begins the line
    for limit in _LIMIT.finditer(text, low, candidate.start):
        low = limit.end()
    # Below a code that stands alone, its text may follow after a blank line.
    is_alone = _LINE_START.fullmatch(text, line_start, candidate.start)
    skipped = _ink(text[candidate.end : high]) if is_alone else 0
    limits = _LIMIT.finditer(text, candidate.end + skipped, high)
    high = next((limit.start() for limit in limits), high)
    return (
        Passage(text[low : candidate.start], low, candidate.start),
        Passage(text[candidate.end : high], candidate.end, high),
    )


def words_beside(text: str, candidate: Candidate, codes: Sequence[Candidate]) -> str:
    """Return the words next to a code as the text of a search, or "" if there are hardly any."""
    before, after = beside(text, candidate, codes)
    line_before = before.text.rpartition("\n")[2][-_LONGEST_WORDS:]
    words = f"{line_before} {after.text.strip()[:_LONGEST_WORDS]}"
    return " ".join(words.split()) if len(_LETTERS.findall(words)) >= 4 else ""  # noqa: PLR2004


def without(text: str, codes: Iterable[Candidate]) -> str:
    """Return *text* without its codes: ``D2.Geo.4.K-2`` names no grade."""
    kept, position = list[str](), 0
    for each in codes:
        kept.append(text[position : each.start])
        position = each.end
    return " ".join((*kept, text[position:]))


def quotations(
    text: str, codes: Mapping[Candidate, Sequence[StandardRecord]]
) -> dict[tuple[Candidate, str], Quotation]:
    """Return the quotations of official texts next to their codes, with positions in *text*.

    Args:
        codes: The records of each code.

    Returns:
        The quotations by code and id of the record.
    """
    places = list(codes)
    found = dict[tuple[Candidate, str], Quotation]()
    for candidate, records in codes.items():
        official = [each for each in records if each.text_status == "official" and each.description]
        if not official:
            continue
        before, after = beside(text, candidate, places)
        for record in official:
            options = [
                _moved(quotation, passage.start)
                for passage in (after, before)
                if (
                    quotation := find_quotation(
                        record.description, passage.text, is_after_code=passage is after
                    )
                )
            ]
            if options:
                best = min(options, key=lambda each: (bool(each.diff), -each.words))
                found[candidate, record.id] = best
    return {
        key: each
        for key, each in found.items()
        if not any(
            key[0] != other and _is_better(rival, each) for (other, _), rival in found.items()
        )
    }


def _is_better(rival: Quotation, quotation: Quotation) -> bool:
    """Return True if the same words are rather the quotation of another standard."""
    is_same = rival.start < quotation.end and quotation.start < rival.end
    return is_same and (bool(rival.diff), -rival.words) < (bool(quotation.diff), -quotation.words)


def without_codes(text: str, taken: Iterable[tuple[int, int]], most: int) -> list[Passage]:
    """Return the longest passages that describe activities and have no code, in their order.

    Args:
        taken: The places of codes and quotations.
        most: Maximum number of passages.
    """
    places = sorted(taken)
    blocks = [
        each
        for each in _blocks(text)
        if not any(start < each.end and each.start < end for start, end in places)
        and len(_LETTERS.findall(each.text)) >= _LEAST_WORDS
        and not _LOGISTICS.match(each.text)
    ]
    longest = sorted(blocks, key=lambda each: -len(each.text))[:most]
    return sorted(longest, key=lambda each: each.start)


def _blocks(text: str) -> Iterator[Passage]:
    """Yield the paragraphs of a text: a list item, a row or a paragraph of several lines."""
    start = position = 0
    for line in (*text.split("\n"), ""):
        is_new = not line.strip() or re.match(rf"\s*{_ITEM}", line) is not None
        if (is_new or position - start > _LONGEST_PASSAGE) and position > start:
            yield Passage(text[start : position - 1], start, position - 1)
            start = position
        position += len(line) + 1
        if not line.strip():
            start = position


def _ink(text: str) -> int:
    """Return the position of the first word."""
    match = _LETTERS.search(text)
    return match.start() if match else len(text)


def _moved(quotation: Quotation, by: int) -> Quotation:
    return Quotation(
        quotation.start + by,
        quotation.end + by,
        quotation.words,
        quotation.diff,
        quotation.is_whole,
    )
