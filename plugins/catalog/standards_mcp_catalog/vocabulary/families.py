"""Families of codes: find a code's publisher by its form, and the command that loads the family."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .notation import is_common_core, plain_text

_FROM_CSP: Final = '`standards-mcp data import --from-api csp --jurisdiction "{}"`'
_STARTER: Final = "`standards-mcp data import starter`"


class Family(NamedTuple):
    """The standards of one publisher, recognized by the form of their codes.

    Attributes:
        name: Common name of the family, with an article.
        places: Names of the family's jurisdictions, as `names.jurisdictions_named` accepts them.
        source: Command that loads the family, in backticks.
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
_FLORIDA_2014: Final = Family(
    "Florida's standards of 2014 (MAFS and LAFS), which B.E.S.T. has replaced",
    ("Florida",),
    _FROM_CSP.format("Florida"),
)
_C3: Final = Family("the C3 Framework for social studies", ("C3",), _STARTER)
_CSTA: Final = Family("the CSTA computer science standards", ("CSTA",), _STARTER)

LABELS: Final = {"NGSS": _NGSS, "TEKS": _TEKS, "SOL": _SOL, "C3": _C3, "CSTA": _CSTA}
"""Families by the label that people write before a code, as in ``TEKS 110.3``."""

_FAMILIES_BY_PLACE: Final = {
    "Common Core State Standards": COMMON_CORE,
    "Next Generation Science Standards": _NGSS,
    "C3 Framework (NCSS)": _C3,
    "CSTA": _CSTA,
    "Texas": _TEKS,
    "Virginia": _SOL,
    "Florida": _FLORIDA,
}

# Patterns of codes in upper case, without punctuation around them. Only forms that no other of 51
# frameworks has: 3.5 is not among them, so a code of Virginia needs the label "SOL".
_FORMS: Final = (
    (r"(?:K|[1-8]|MS|HS|K-2|3-5)[.-](?:PS|LS|ESS|ETS)[1-4][.-]\d{1,2}", _NGSS),
    (r"(?:PS|LS|ESS|ETS)[1-4]\.[A-E]", _NGSS),
    # Texas Administrative Code, title 19, chapters 110 to 130
    (r"(?:§+ ?|TEKS[ .-])1(?:1\d|2[0-8]|30)\b.*", _TEKS),
    (r"1(?:1\d|2[0-8]|30)\.\d{1,3} ?[.(-] ?\(?[A-Z0-9].*", _TEKS),
    (r"MA\.(?:K|[1-8]|912|K12)\.(?:NSO|AR|F|FR|M|GR|DP|MTR|FL|C|LT|T)\.\d\.\d{1,2}", _FLORIDA),
    (r"ELA\.(?:K|[1-9]|1[0-2]|K12)\.(?:F|R|C|V|EE)\.\d\.\d{1,2}", _FLORIDA),
    (r"(?:SC|SS)\.(?:K|[1-8]|68|912|K12)\.[A-Z]{1,3}\.\d{1,2}\.\d{1,2}", _FLORIDA),
    (r"(?:MAFS|LAFS|MACC|LACC)\..+", _FLORIDA_2014),
    (r"D[1-4]\.(?:[A-Z]{3}\.)?\d{1,2}\.(?:K-2|3-5|6-8|9-12)", _C3),
    (r"(?:1A|1B|2|3A|3B)-(?:CS|NI|DA|AP|IC)-\d{2}", _CSTA),
    (r"(?:CT|CL|CPP|CD|CI)\.L[1-3][AB]?:\d{1,2}(?:-\d{2})?", _CSTA),
)
_LABEL: Final = re.compile(rf"(?:{'|'.join(LABELS)})(?=[\s.:§#(-]*\d)", re.IGNORECASE)
_PUNCTUATION: Final = " \t\r\n.,;:!?\"'`\u201c\u201d\u2018\u2019<>[]{}"


def family_of(code: str) -> Family | None:
    """Return the family of a code, or None if the form of the code leaves a doubt."""
    text = plain_text(code).strip(_PUNCTUATION)
    upper = text.upper()
    for form, family in _FORMS:
        if re.fullmatch(form, upper):
            return family
    if label := _LABEL.match(text):
        return LABELS[label[0].upper()]
    return COMMON_CORE if is_common_core(text) else None


def family_of_place(place: str) -> Family:
    """Return the family that *place*, a result of `names.place_named`, publishes."""
    if place in _FAMILIES_BY_PLACE:
        return _FAMILIES_BY_PLACE[place]
    return Family(f"the standards of {place}", (place,), _FROM_CSP.format(place))
