"""Whose standards there are: the states, territories and bodies, by every name that is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .notation import guid_of, plain_text

# Two-letter codes of the United States Postal Service:
# https://about.usps.com/who/profile/history/state-abbreviations.htm
_STATES: Final[Mapping[str, str]] = {
    "al": "Alabama", "ak": "Alaska", "az": "Arizona", "ar": "Arkansas", "ca": "California",
    "co": "Colorado", "ct": "Connecticut", "de": "Delaware", "dc": "District of Columbia",
    "fl": "Florida", "ga": "Georgia", "hi": "Hawaii", "id": "Idaho", "il": "Illinois",
    "in": "Indiana", "ia": "Iowa", "ks": "Kansas", "ky": "Kentucky", "la": "Louisiana",
    "me": "Maine", "md": "Maryland", "ma": "Massachusetts", "mi": "Michigan", "mn": "Minnesota",
    "ms": "Mississippi", "mo": "Missouri", "mt": "Montana", "ne": "Nebraska", "nv": "Nevada",
    "nh": "New Hampshire", "nj": "New Jersey", "nm": "New Mexico", "ny": "New York",
    "nc": "North Carolina", "nd": "North Dakota", "oh": "Ohio", "ok": "Oklahoma", "or": "Oregon",
    "pa": "Pennsylvania", "ri": "Rhode Island", "sc": "South Carolina", "sd": "South Dakota",
    "tn": "Tennessee", "tx": "Texas", "ut": "Utah", "vt": "Vermont", "va": "Virginia",
    "wa": "Washington", "wv": "West Virginia", "wi": "Wisconsin", "wy": "Wyoming",
}  # fmt: skip
_TERRITORIES: Final[Mapping[str, str]] = {
    "as": "American Samoa", "gu": "Guam", "mp": "Northern Mariana Islands", "pr": "Puerto Rico",
    "vi": "Virgin Islands",
}  # fmt: skip
_SHORT: Final[Mapping[str, str]] = {
    "washington dc": "District of Columbia",
    "us virgin islands": "Virgin Islands",
    "usvi": "Virgin Islands",
    "cnmi": "Northern Mariana Islands",
    "common core": "Common Core State Standards",
    "ccss": "Common Core State Standards",
    "ccssi": "Common Core State Standards",
    "common core state standards initiative": "Common Core State Standards",
    "ngss": "Next Generation Science Standards",
    "c3": "C3 Framework (NCSS)",
    "c3 framework": "C3 Framework (NCSS)",
    "ncss": "C3 Framework (NCSS)",
    "national council for the social studies": "C3 Framework (NCSS)",
    "csta": "CSTA",
    "computer science teachers association": "CSTA",
}
# Who publishes a state's standards, where the name does not begin with that of the state.
_PUBLISHERS: Final[Mapping[str, str]] = {
    "cpalms": "Florida",
    "gadoe": "Georgia",
    "isbe": "Illinois",
    "nysed": "New York",
    "ncdpi": "North Carolina",
    "teks": "Texas",
}
_TITLE: Final = re.compile(r"(?:the )?(?:state|commonwealth|territory) of (?!the )")
_MARK: Final = re.compile(
    r"\s*[:,]|\s+[-\u2013\u2014]|\s+(?:state )?(?:agency|board|department|doe|education|office)\b",
    re.IGNORECASE,
)
_BETWEEN_LETTERS: Final = re.compile(r"(?<=\b\w) (?=\w\b)")


LONGEST_NAME: Final = 1_000
"""Names are compared by this many characters: a client may send megabytes."""


def folded(text: str) -> str:
    """Return a text by which spellings of one name are equal; GUIDs lose their dashes."""
    text = text[:LONGEST_NAME]
    return guid_of(text) or " ".join(re.split(r"[\W_]+", plain_text(text).casefold())).strip()


_STATE_NAMES: Final = {**_STATES, **{folded(name): name for name in _STATES.values()}}
_OWN_NAMES: Final = {
    **_STATE_NAMES,
    **_TERRITORIES,
    **_SHORT,
    **{folded(name): name for name in (*_TERRITORIES.values(), *_SHORT.values())},
}


def state_named(text: str) -> str | None:
    """Return the name of the state that a name or a postal code stands for, such as New York."""
    return _STATE_NAMES.get(folded(text))


def place_named(text: str) -> str | None:
    """Return the state, territory or body that a text is a name of, None where it is none.

    Names are the full one, the postal code or initials (``FL``, ``D.C.``, ``CCSS``), and that of a
    publisher such as ``CPALMS``.
    """
    name = _plain(text)
    return _OWN_NAMES.get(name) or _PUBLISHERS.get(name)


def before_mark(text: str) -> str:
    """Return the part of a title before a colon, a comma, a dash, or the name of an agency."""
    return _MARK.split(text, maxsplit=1)[0]


def proper_name(text: str) -> str:
    """Return how a place is called that is named by its code or in small letters, else *text*.

    A publisher's name stays: whoever writes it may mean it.
    """
    return _OWN_NAMES.get(_plain(text)) or " ".join(text.split())


def names_of_place(text: str) -> list[str]:
    """Return the names under which sources may have the place that a text names; none of others.

    For a store that cannot list its jurisdictions and compares texts letter by letter.
    """
    place = place_named(text)
    short = (name.upper() for name, of in {**_STATES, **_TERRITORIES}.items() if of == place)
    publishers = (name.upper() for name, of in _PUBLISHERS.items() if of == place)
    return [place, *short, *publishers] if place else []


def is_publisher(text: str) -> bool:
    """Return whether a text is the name of who publishes a state's standards."""
    return _plain(text) in _PUBLISHERS


def _plain(text: str) -> str:
    return _TITLE.sub("", _BETWEEN_LETTERS.sub("", folded(text)), count=1)
