"""Families of codes: find the publisher by the form of a code, and the command that loads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .notation import is_common_core, plain_text

_FROM_CSP: Final = '`standards-mcp data import --from-api csp --jurisdiction "{}"`'
_STARTER: Final = "`standards-mcp data import starter`"


@dataclass(frozen=True, slots=True)
class Family:
    """The standards of one publisher, known by the form of their codes.

    Attributes:
        name: Its common name.
        places: The jurisdictions that sources give for it, by names that `names` understands.
        source: How to load it: the command in backticks.
    """

    name: str
    places: tuple[str, ...]
    source: str


COMMON_CORE: Final = Family("the Common Core", ("Common Core",), _STARTER)
_NGSS: Final = Family(
    "the Next Generation Science Standards (NGSS)",
    ("NGSS",),
    _FROM_CSP.format("Next Generation Science Standards"),
)
_TEKS: Final = Family(
    "the Texas Essential Knowledge and Skills (TEKS)",
    ("Texas",),
    "`standards-mcp data import --from-api case https://teks-api.texasgateway.org`",
)
_SOL: Final = Family(
    "the Virginia Standards of Learning (SOL)", ("Virginia",), _FROM_CSP.format("Virginia")
)
_FLORIDA: Final = Family(
    "Florida's standards (B.E.S.T. and NGSSS)",
    ("Florida",),
    "`standards-mcp data import PACKAGE.json --jurisdiction Florida` with a CASE package from https://www.cpalms.org",
)
_FLORIDA_BEFORE: Final = Family(
    "Florida's standards of 2014 (MAFS and LAFS), which B.E.S.T. has replaced",
    ("Florida",),
    _FROM_CSP.format("Florida"),
)
_C3: Final = Family("the C3 Framework for social studies", ("C3",), _STARTER)
_CSTA: Final = Family("the CSTA computer science standards", ("CSTA",), _STARTER)

LABELS: Final = {"NGSS": _NGSS, "TEKS": _TEKS, "SOL": _SOL, "C3": _C3, "CSTA": _CSTA}
"""The names of families that people write before a code."""

_OF_PLACES: Final = {
    "Common Core State Standards": COMMON_CORE,
    "Next Generation Science Standards": _NGSS,
    "C3 Framework (NCSS)": _C3,
    "CSTA": _CSTA,
    "Texas": _TEKS,
    "Virginia": _SOL,
    "Florida": _FLORIDA,
}

# In upper case, without marks around.
# Only forms that no other framework has: among the codes of 51 frameworks, 3.5 belongs to Virginia
# only after "SOL".
_FORMS: Final = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"(?:K|[1-8]|MS|HS|K-2|3-5)[.-](?:PS|LS|ESS|ETS)[1-4][.-]\d{1,2}", _NGSS),
        (r"(?:PS|LS|ESS|ETS)[1-4]\.[A-E]", _NGSS),
        # Texas Administrative Code, title 19, chapters 110 to 130
        (r"(?:§+ ?|TEKS[ .-])1(?:1\d|2[0-8]|30)\b.*", _TEKS),
        (r"1(?:1\d|2[0-8]|30)\.\d{1,3} ?[.(-] ?\(?[A-Z0-9].*", _TEKS),
        (r"MA\.(?:K|[1-8]|912|K12)\.(?:NSO|AR|F|FR|M|GR|DP|MTR|FL|C|LT|T)\.\d\.\d{1,2}", _FLORIDA),
        (r"ELA\.(?:K|[1-9]|1[0-2]|K12)\.(?:F|R|C|V|EE)\.\d\.\d{1,2}", _FLORIDA),
        (r"(?:SC|SS)\.(?:K|[1-8]|68|912|K12)\.[A-Z]{1,3}\.\d{1,2}\.\d{1,2}", _FLORIDA),
        (r"(?:MAFS|LAFS|MACC|LACC)\..+", _FLORIDA_BEFORE),
        (r"D[1-4]\.(?:[A-Z]{3}\.)?\d{1,2}\.(?:K-2|3-5|6-8|9-12)", _C3),
        (r"(?:1A|1B|2|3A|3B)-(?:CS|NI|DA|AP|IC)-\d{2}", _CSTA),
        (r"(?:CT|CL|CPP|CD|CI)\.L[1-3][AB]?:\d{1,2}(?:-\d{2})?", _CSTA),
    )
)
_LABEL: Final = re.compile(rf"(?:{'|'.join(LABELS)})(?=[\s.:§#(-]*\d)", re.IGNORECASE)
_AROUND: Final = " \t\r\n.,;:!?\"'`\u201c\u201d\u2018\u2019<>[]{}"


def family_of(code: str) -> Family | None:
    """Return the family that the form of a code names beyond doubt, or None."""
    text = plain_text(code).strip(_AROUND)
    upper = text.upper()
    for form, family in _FORMS:
        if form.fullmatch(upper):
            return family
    if label := _LABEL.match(text):
        return LABELS[label[0].upper()]
    return COMMON_CORE if is_common_core(text) else None


def family_of_place(place: str) -> Family:
    """Return the family that a state or a body publishes, by a name of `names.place_named`."""
    if place in _OF_PLACES:
        return _OF_PLACES[place]
    return Family(f"the standards of {place}", (place,), _FROM_CSP.format(place))
