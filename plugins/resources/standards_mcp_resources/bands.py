"""Find the next strand in frameworks whose codes name grade bands: NGSS, C3 and CSTA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from standards_mcp_catalog.vocabulary.core_ideas import SCIENCE_BANDS, grades_and_idea, titled
from standards_mcp_catalog.vocabulary.notation import canonical_key

# In the spelling of `canonical_key`: D2.Eco.1.3-5 is D2.ECO.1.3.5, and 1B-AP-10 is 1B.AP.10.
_C3_BANDS: Final = ("K.2", "3.5", "6.8", "9.12")
_C3_CODE: Final = re.compile(
    r"(?P<indicator>D\d(?:\.[A-Z]+)?\.\d+)\.(?P<band>K\.2|3\.5|6\.8|9\.12)"
)
_CSTA_LEVELS: Final = ("1A", "1B", "2", "3A", "3B")
_CSTA_CODE: Final = re.compile(r"(?P<level>1A|1B|2|3A|3B)\.(?P<concept>CS|NI|DA|AP|IC)(?:\..*)?")
_Item = TypeVar("_Item")


class NextBand(NamedTuple):
    """The continuation of a strand in the next or the previous grade band.

    Attributes:
        code: The code of the same indicator in that band, or None if codes do not show it.
        strands: Beginnings of the codes that continue the strand, in any grade.
        name: The strand and its grades or level, for a sentence.
    """

    code: str | None = None
    strands: tuple[str, ...] = ()
    name: str = ""


def next_band(code: str, step: int) -> NextBand | None:
    """Return the continuation after (*step* 1) or before (-1) a code; None for other frameworks."""
    key = canonical_key(code)
    if science := grades_and_idea(code):
        grades, idea = science
        where = "later" if step > 0 else "earlier"
        strands = tuple(f"{each}.{idea}" for each in _science_grades(grades, step))
        return NextBand(strands=strands, name=f"Core idea {titled(idea)}, in {where} grades")
    if match := _C3_CODE.fullmatch(key):
        bands = _beyond(_C3_BANDS, match["band"], step)
        return NextBand(code=f"{match['indicator']}.{bands[0]}" if bands else None)
    if match := _CSTA_CODE.fullmatch(key):
        levels = _beyond(_CSTA_LEVELS, match["level"], step)[:1]
        strands = tuple(f"{level}.{match['concept']}" for level in levels)
        return NextBand(
            strands=strands, name=f"Concept {match['concept']}, level {''.join(levels)}"
        )
    return None


def _science_grades(grades: str, step: int) -> Iterator[str]:
    """Yield the grades of the same band on one side, and then the whole next band."""
    # The whole band, because a core idea skips grades within a band (appendix E of the NGSS).
    own = next(band for band in SCIENCE_BANDS if grades in band)
    yield from _beyond(own, grades, step)
    for band in _beyond(SCIENCE_BANDS, own, step)[:1]:
        yield from band


def _beyond(items: Sequence[_Item], item: _Item, step: int) -> Sequence[_Item]:
    """Return the items after (*step* 1) or before (-1) an item, the nearest first."""
    place = items.index(item)
    return items[place + 1 :] if step > 0 else items[:place][::-1]
