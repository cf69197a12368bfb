"""Names of places, jurisdictions and standard sets: match the spellings of users and sources."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from standards_mcp_catalog.errors import CatalogError

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
# Publishers of a state's standards whose names do not begin with the state's name.
_PUBLISHERS: Final[Mapping[str, str]] = {
    "cpalms": "Florida",
    "gadoe": "Georgia",
    "isbe": "Illinois",
    "nysed": "New York",
    "ncdpi": "North Carolina",
    "teks": "Texas",
}
_TITLE: Final = re.compile(r"(?:the )?(?:state|commonwealth|territory) of (?!the )")
# Districts begin with the name of their state, too, so only a mark or an agency may follow it.
_MARK: Final = re.compile(
    r"\s*[:,]|\s+[-\u2013\u2014]|\s+(?:state )?(?:agency|board|department|doe|education|office)\b",
    re.IGNORECASE,
)
_BETWEEN_LETTERS: Final = re.compile(r"(?<=\b\w) (?=\w\b)")


LONGEST_NAME: Final = 1_000
"""Names are compared by this many characters: a client may send megabytes."""


def folded(text: str) -> str:
    """Return the common form of the spellings of a name; GUIDs lose their dashes."""
    text = text[:LONGEST_NAME]
    return guid_of(text) or " ".join(re.split(r"[\W_]+", plain_text(text).casefold())).strip()


_STATE_NAMES: Final = {**_STATES, **{folded(name): name for name in _STATES.values()}}
_OWN_NAMES: Final = {
    **_STATE_NAMES,
    **_TERRITORIES,
    **_SHORT,
    **{folded(name): name for name in (*_TERRITORIES.values(), *_SHORT.values())},
}


STATES: Final = tuple(_STATES.values())
"""The names of the states, and of the District of Columbia."""

POSTAL_CODES: Final = tuple(code.upper() for code in _STATES)
"""The two-letter codes of `STATES`, such as NY."""


def state_named(text: str) -> str | None:
    """Return the state for a name or a postal code, such as New York, or None."""
    return _STATE_NAMES.get(folded(text))


def place_named(text: str) -> str | None:
    """Return the state, territory or body for a text, or None.

    Names are the full one, the postal code or initials (``FL``, ``D.C.``, ``CCSS``), and the name
    of a publisher such as ``CPALMS``.
    """
    name = _plain(text)
    return _OWN_NAMES.get(name) or _PUBLISHERS.get(name)


def before_mark(text: str) -> str:
    """Return the part of a title before a colon, a comma, a dash, or the name of an agency."""
    return _MARK.split(text, maxsplit=1)[0]


# Records keep the name of their source: users would not find a name of our own in its publications.
def proper_name(text: str) -> str:
    """Return how a place is called that is named by its code or in small letters, else *text*.

    A publisher's name stays, since users may mean the publisher.
    """
    return _OWN_NAMES.get(_plain(text)) or " ".join(text.split())


def names_of_place(text: str) -> list[str]:
    """Return the names that sources may use for a place; the list is empty for other texts.

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


_SHORTEST_INITIALS: Final = 3
_SHORTEST_PART: Final = 3
_LONGEST_QUOTE: Final = 60
_MOST_NAMES: Final = 12
_MOST_HINTS: Final = 3


class JurisdictionNameError(CatalogError, ValueError):
    """A text names no jurisdiction that is there, or several; the message names those."""


def jurisdictions_named(text: str, titles: Iterable[str]) -> list[str]:
    """Return the titles for a name: equal ones, or else titles with this short form.

    A name, a code and initials of one place mean the same (``Florida``, ``FL``, ``CPALMS``; see
    `places`). Short are the first words (``Common Core``) and the initials of three words or more.
    A state must come before a mark or an agency: ``Illinois: Chicago`` and ``Illinois State Board``
    are titles of Illinois, but ``Kansas City`` is not one of Kansas.
    """
    names = {title: folded(title) for title in titles}
    given, place = folded(text), place_named(text)
    equal = [title for title, name in names.items() if given and name == given]
    if equal and (place is None or is_publisher(text)):
        return equal
    if place and (same := [each for each in names if place_named(each) == place]):
        return same
    if place and state_named(place):
        return [
            title
            for title in names
            if place_named(before_mark(title)) == place and not _is_elsewhere(title, place)
        ]
    for wanted in dict.fromkeys((given, folded(place or ""))):
        if found := [
            title
            for title, name in names.items()
            if _is_short(wanted, name) and not _is_elsewhere(title, place)
        ]:
            return found
    return []


def jurisdictions_meant(text: str, titles: Collection[str]) -> list[str]:
    """Return the titles that a name means; several only where all are names of one place.

    Raises:
        JurisdictionNameError: It means none of them, or several.
    """
    found = jurisdictions_named(text, titles)
    if not found:
        raise unknown_jurisdiction_error(text, titles)
    return of_one_place(text, found)


def of_one_place(text: str, found: list[str]) -> list[str]:
    """Return the titles that a text was found to mean, if all are names of one place.

    Raises:
        JurisdictionNameError: They are not; the message names them.
    """
    # An answer about New York and New Jersey together looks certain and is wrong.
    if len({same_jurisdiction(each) for each in found}) > 1:
        raise JurisdictionNameError(
            f"{quoted(text)} may be {listed(found, 'or')}. Name one of them in full."
        )
    return found


def same_jurisdiction(title: str) -> str:
    """Return a text that is equal for titles of one jurisdiction: of one place, or in any case."""
    return place_named(title) or folded(title) or title


def unknown_jurisdiction_error(text: str, titles: Collection[str]) -> JurisdictionNameError:
    """Return the error for a name of no jurisdiction; it offers near ones and names all."""
    place = place_named(text)
    missing = f" No standards of {place} are loaded." if place else ""
    near = jurisdictions_named(text, titles) or titles_like(text, titles)
    near = near or titles_with(place or "", titles)
    hint = f" Did you mean {' or '.join(map(repr, near[:_MOST_HINTS]))}?" if near else ""
    there = f"There are: {listed(titles)}." if titles else "None is loaded."
    return JurisdictionNameError(f"No jurisdiction here is {quoted(text)}.{missing}{hint} {there}")


def fits_jurisdiction(text: str, title: str) -> bool:
    """Return whether a title is meant by a name, or has the words of one: ``Elm`` in ``Elm City``.

    A title that is another place is not: ``West Virginia`` has the word ``Virginia``.
    """
    if jurisdictions_named(text, [title]):
        return True
    place = place_named(text)
    if _is_elsewhere(title, place):
        return False
    parts = (folded(text), folded(place or ""))
    return any(len(part) >= _SHORTEST_PART and titles_with(part, [title]) for part in parts)


def are_one_jurisdiction(title: str, other: str) -> bool:
    """Tell whether two titles are of one jurisdiction, such as the NGSS by name and by initials."""
    return bool(jurisdictions_named(title, [other]) or jurisdictions_named(other, [title]))


def titles_with(text: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that have each word of a text, or a word that it begins.

    Numbers count whole: ``math grade 1`` is in ``Mathematics: Grade 1``, not in ``Grade 11``.
    """
    words = folded(text).split()
    return [each for each in titles if words and _has_words(words, folded(each).split())]


def titles_like(text: str, titles: Iterable[str]) -> list[str]:
    """Return a few titles that have the words of a text, or else are spelled nearly so."""
    titles = list(titles)
    by_spelling = {folded(place_named(title) or title): title for title in titles}
    by_spelling |= {folded(title): title for title in titles}
    nearly = difflib.get_close_matches(folded(text), by_spelling, n=_MOST_HINTS)
    found = titles_with(text, titles) or [by_spelling[each] for each in nearly]
    return list(dict.fromkeys(found))[:_MOST_HINTS]


def quoted(text: str) -> str:
    """Return user input in quotation marks, cut if it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")


def listed(names: Iterable[str], word: str = "") -> str:
    """Return names between quotation marks, the last after *word*; the first of too many."""
    every = list(dict.fromkeys(names))
    shown = [repr(each) for each in sorted(every[:_MOST_NAMES])]
    if more := len(every) - len(shown):
        return f"{', '.join(shown)} and {more:,} more"
    if word and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {word} {shown[-1]}"
    return ", ".join(shown)


def _is_elsewhere(title: str, place: str | None) -> bool:
    """Return whether a title is another place: ``Washington, D.C.`` is not in Washington."""
    return place is not None and place_named(title) not in {None, place}


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
