"""Names of jurisdictions and standard sets: from how people write them to how a source has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from .notation import guid_of, plain_text

_SHORTEST_INITIALS: Final = 3
# Two-letter codes of the United States Postal Service:
# https://about.usps.com/who/profile/history/state-abbreviations.htm
_STATES: Final[Mapping[str, str]] = {
    "al": "alabama", "ak": "alaska", "az": "arizona", "ar": "arkansas", "ca": "california",
    "co": "colorado", "ct": "connecticut", "de": "delaware", "dc": "district of columbia",
    "fl": "florida", "ga": "georgia", "hi": "hawaii", "id": "idaho", "il": "illinois",
    "in": "indiana", "ia": "iowa", "ks": "kansas", "ky": "kentucky", "la": "louisiana",
    "me": "maine", "md": "maryland", "ma": "massachusetts", "mi": "michigan", "mn": "minnesota",
    "ms": "mississippi", "mo": "missouri", "mt": "montana", "ne": "nebraska", "nv": "nevada",
    "nh": "new hampshire", "nj": "new jersey", "nm": "new mexico", "ny": "new york",
    "nc": "north carolina", "nd": "north dakota", "oh": "ohio", "ok": "oklahoma", "or": "oregon",
    "pa": "pennsylvania", "ri": "rhode island", "sc": "south carolina", "sd": "south dakota",
    "tn": "tennessee", "tx": "texas", "ut": "utah", "vt": "vermont", "va": "virginia",
    "wa": "washington", "wv": "west virginia", "wi": "wisconsin", "wy": "wyoming",
}  # fmt: skip


def folded(text: str) -> str:
    """Return a text by which spellings of one name are equal; GUIDs lose their dashes."""
    return guid_of(text) or " ".join(re.split(r"[\W_]+", plain_text(text).casefold())).strip()


def jurisdictions_named(text: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that a name means: it itself, or else those that it is short for.

    Short are the first words (``Common Core``), the initials of three words or more (``CCSS``) and
    the postal code of a state (``TX``).
    """
    names = {title: folded(title) for title in titles}
    given = folded(text)
    for wanted in (given, _STATES.get(given, "")):
        equal = [title for title, name in names.items() if name == wanted]
        if found := equal or [each for each, name in names.items() if _is_short(wanted, name)]:
            return found
    return []


def are_one_jurisdiction(title: str, other: str) -> bool:
    """Tell whether two titles are of one jurisdiction, such as the NGSS by name and by initials."""
    return bool(jurisdictions_named(title, [other]) or jurisdictions_named(other, [title]))


def state_named(text: str) -> str | None:
    """Return the name of the state that a name or a postal code stands for, such as New York."""
    given = folded(text)
    name = _STATES.get(given, given)
    return name.title().replace(" Of ", " of ") if name in _STATES.values() else None


def titles_with(text: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that have each word of a text, or a word that it begins.

    Numbers count whole: ``math grade 1`` is in ``Mathematics: Grade 1``, not in ``Grade 11``.
    """
    words = folded(text).split()
    return [each for each in titles if words and _has_words(words, folded(each).split())]


def _is_short(wanted: str, name: str) -> bool:
    initials = "".join(word[0] for word in name.split())
    is_initials = wanted == initials and len(initials) >= _SHORTEST_INITIALS
    return bool(wanted) and (is_initials or name.startswith(f"{wanted} "))


def _has_words(wanted: Iterable[str], words: Iterable[str]) -> bool:
    known = tuple(words)
    return all(
        any(word == each or (word.isalpha() and each.startswith(word)) for each in known)
        for word in wanted
    )
