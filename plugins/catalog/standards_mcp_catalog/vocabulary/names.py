"""Match names of places, jurisdictions and standard sets in the spellings of users and sources."""

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
_ALIASES: Final[Mapping[str, str]] = {
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
# Publishers of states' standards whose names do not begin with the name of the state.
_PUBLISHERS: Final[Mapping[str, str]] = {
    "cpalms": "Florida",
    "gadoe": "Georgia",
    "isbe": "Illinois",
    "nysed": "New York",
    "ncdpi": "North Carolina",
    "teks": "Texas",
}
_STATE_OF: Final = re.compile(r"(?:the )?(?:state|commonwealth|territory) of (?!the )")
# Names of districts may begin with a state, too, so only punctuation or an agency may follow one.
_AFTER_STATE: Final = re.compile(
    r"\s*[:,]|\s+[-\u2013\u2014]|\s+(?:state )?(?:agency|board|department|doe|education|office)\b",
    re.IGNORECASE,
)
_SPACE_IN_INITIALS: Final = re.compile(r"(?<=\b\w) (?=\w\b)")


LONGEST_NAME: Final = 1_000
"""Number of characters of a name that are compared: a client may send megabytes."""


def folded(text: str) -> str:
    """Return *text* as words in lower case, or the GUID in it without dashes, for comparison."""
    text = text[:LONGEST_NAME]
    return guid_of(text) or " ".join(re.split(r"[\W_]+", plain_text(text).casefold())).strip()


_STATES_BY_NAME: Final = {**_STATES, **{folded(name): name for name in _STATES.values()}}
_PLACES_BY_NAME: Final = {
    **_STATES_BY_NAME,
    **_TERRITORIES,
    **_ALIASES,
    **{folded(name): name for name in (*_TERRITORIES.values(), *_ALIASES.values())},
}


STATES: Final = tuple(_STATES.values())
"""The names of the states, and of the District of Columbia."""

POSTAL_CODES: Final = tuple(code.upper() for code in _STATES)
"""The two-letter codes of `STATES`, such as NY."""


def state_named(text: str) -> str | None:
    """Return the name of the state for a name or postal code such as ``NY``, or None."""
    return _STATES_BY_NAME.get(folded(text))


def place_named(text: str) -> str | None:
    """Return the full name of the state, territory or body that *text* names, or None.

    *text* may be the full name, a postal code or initials (``FL``, ``D.C.``, ``CCSS``), or a
    publisher such as ``CPALMS``.
    """
    name = _plain(text)
    return _PLACES_BY_NAME.get(name) or _PUBLISHERS.get(name)


# Records keep the names in their source, because users know these from its publications.
def proper_name(text: str) -> str:
    """Return the full name of the place that *text* names, or *text* with single spaces.

    The name of a publisher is kept, since users may mean the publisher.
    """
    return _PLACES_BY_NAME.get(_plain(text)) or " ".join(text.split())


def names_of_place(text: str) -> list[str]:
    """Return the names that sources may use for the place that *text* names, or an empty list.

    These are for stores that cannot list their jurisdictions and compare texts exactly.
    """
    place = place_named(text)
    by_code = {**_STATES, **_TERRITORIES}
    codes = (code.upper() for code, named in by_code.items() if named == place)
    publishers = (name.upper() for name, state in _PUBLISHERS.items() if state == place)
    return [place, *codes, *publishers] if place else []


def _plain(text: str) -> str:
    return _STATE_OF.sub("", _SPACE_IN_INITIALS.sub("", folded(text)), count=1)


_SHORTEST_INITIALS: Final = 3
_SHORTEST_PART: Final = 3
_LONGEST_QUOTE: Final = 60
_MOST_NAMES: Final = 12
_MOST_HINTS: Final = 3


class JurisdictionNameError(CatalogError, ValueError):
    """A text names no available jurisdiction, or several; the message lists the candidates."""


def jurisdictions_named(text: str, titles: Iterable[str]) -> list[str]:
    """Return the jurisdictions in *titles* that *text* names in full, or else by a short form.

    The names, codes and initials of a place mean the same (see `place_named`). Short forms are the
    first words (``Common Core``) and the initials of three words or more. After a state,
    punctuation or an agency must follow: ``Illinois: Chicago`` and ``Illinois State Board`` are
    titles of Illinois, but ``Kansas City`` is not a title of Kansas.
    """
    names = {title: folded(title) for title in titles}
    name_in_text, place = folded(text), place_named(text)
    equal = [title for title, name in names.items() if name and name == name_in_text]
    if equal and (place is None or _plain(text) in _PUBLISHERS):
        return equal
    if place and (same := [each for each in names if place_named(each) == place]):
        return same
    if place and state_named(place):
        return [
            title
            for title in names
            if place_named(_AFTER_STATE.split(title, maxsplit=1)[0]) == place
            and not _is_elsewhere(title, place)
        ]
    for wanted in dict.fromkeys((name_in_text, folded(place or ""))):
        if found := [
            title
            for title, name in names.items()
            if _is_short_form(wanted, name) and not _is_elsewhere(title, place)
        ]:
            return found
    return []


def jurisdictions_meant(text: str, titles: Collection[str]) -> list[str]:
    """Return the titles that *text* names; several only if all are names of one place.

    Raises:
        JurisdictionNameError: *text* names none of *titles*, or titles of several places.
    """
    found = jurisdictions_named(text, titles)
    if not found:
        raise unknown_jurisdiction_error(text, titles)
    return of_one_place(text, found)


def of_one_place(text: str, found: list[str]) -> list[str]:
    """Return *found*, the titles that *text* names, if all are names of one place.

    Raises:
        JurisdictionNameError: The titles are of several places; the message lists them.
    """
    # An answer about New York and New Jersey together looks certain and is wrong.
    if len({jurisdiction_key(each) for each in found}) > 1:
        raise JurisdictionNameError(
            f"{quoted(text)} may be {listed(found, 'or')}. Name one of them in full."
        )
    return found


def jurisdiction_key(title: str) -> str:
    """Return a key that is equal for all titles of one jurisdiction: its place or folded title."""
    return place_named(title) or folded(title) or title


def unknown_jurisdiction_error(text: str, titles: Collection[str]) -> JurisdictionNameError:
    """Return the error for an unknown jurisdiction, with similar titles and a list of all."""
    place = place_named(text)
    missing = f" No standards of {place} are loaded." if place else ""
    near = jurisdictions_named(text, titles) or titles_like(text, titles)
    near = near or titles_with(place or "", titles)
    hint = f" Did you mean {' or '.join(map(repr, near[:_MOST_HINTS]))}?" if near else ""
    others = f"There are: {listed(titles)}." if titles else "None is loaded."
    return JurisdictionNameError(f"No jurisdiction here is {quoted(text)}.{missing}{hint} {others}")


def fits_jurisdiction(text: str, title: str) -> bool:
    """Return True if *text* names *title* or has words of it: ``Elm`` for ``Elm City``.

    A title of another place does not fit: ``West Virginia`` has the word ``Virginia``.
    """
    if jurisdictions_named(text, [title]):
        return True
    place = place_named(text)
    if _is_elsewhere(title, place):
        return False
    parts = (folded(text), folded(place or ""))
    return any(len(part) >= _SHORTEST_PART and titles_with(part, [title]) for part in parts)


def are_one_jurisdiction(title: str, other: str) -> bool:
    """Return True if two titles name one jurisdiction, such as the NGSS by name and by initials."""
    return bool(jurisdictions_named(title, [other]) or jurisdictions_named(other, [title]))


def titles_with(text: str, titles: Iterable[str]) -> list[str]:
    """Return the titles in which each word of *text* is a word or the beginning of one.

    Numbers must be whole words: ``grade 1`` is in ``Mathematics: Grade 1``, not in ``Grade 11``.
    """
    words = folded(text).split()
    return [each for each in titles if words and _has_words(words, folded(each).split())]


def titles_like(text: str, titles: Iterable[str]) -> list[str]:
    """Return up to three titles with the words of *text*, or else with a similar spelling."""
    titles = list(titles)
    by_spelling = {folded(place_named(title) or title): title for title in titles}
    by_spelling |= {folded(title): title for title in titles}
    similar = difflib.get_close_matches(folded(text), by_spelling, n=_MOST_HINTS)
    found = titles_with(text, titles) or [by_spelling[each] for each in similar]
    return list(dict.fromkeys(found))[:_MOST_HINTS]


def quoted(text: str) -> str:
    """Return user input in quotation marks, cut if it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")


def listed(names: Iterable[str], word: str = "") -> str:
    """Return names in quotation marks, with *word* before the last; only the first of many."""
    every = list(dict.fromkeys(names))
    shown = [repr(each) for each in sorted(every[:_MOST_NAMES])]
    if more := len(every) - len(shown):
        return f"{', '.join(shown)} and {more:,} more"
    if word and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {word} {shown[-1]}"
    return ", ".join(shown)


def _is_elsewhere(title: str, place: str | None) -> bool:
    """Return True if a title is of another place: ``Washington, D.C.`` is not in Washington."""
    return place is not None and place_named(title) not in {None, place}


def _is_short_form(wanted: str, name: str) -> bool:
    initials = "".join(word[0] for word in name.split())
    is_initials = wanted == initials and len(initials) >= _SHORTEST_INITIALS
    return bool(wanted) and (is_initials or name.startswith(f"{wanted} "))


def _has_words(wanted: Iterable[str], words: Iterable[str]) -> bool:
    known = tuple(words)
    return all(
        any(word == each or (word.isalpha() and each.startswith(word)) for each in known)
        for word in wanted
    )
