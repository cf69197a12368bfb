"""Names of jurisdictions and standard sets: from how people write them to how a source has them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

from standards_mcp_catalog.errors import CatalogError

from .places import before_mark, folded, is_publisher, place_named, state_named

_SHORTEST_INITIALS: Final = 3
_SHORTEST_PART: Final = 3
_LONGEST_QUOTE: Final = 60
_MOST_NAMES: Final = 12
_MOST_HINTS: Final = 3


class JurisdictionNameError(CatalogError, ValueError):
    """A text names no jurisdiction that is there, or several; the message names those."""


def jurisdictions_named(text: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that a name means: it itself, or else those that it is short for.

    A name, a code and initials of one place mean the same (``Florida``, ``FL``, ``CPALMS``; see
    `places`). Short are the first words (``Common Core``) and the initials of three words or more.
    A state is only what stands before a mark or an agency: ``Illinois: Chicago`` and ``Illinois
    State Board``, but never ``Kansas City`` of Kansas.
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
        raise no_jurisdiction(text, titles)
    return of_one_place(text, found)


def of_one_place(text: str, found: list[str]) -> list[str]:
    """Return the titles that a text was found to mean, if all are names of one place.

    Raises:
        JurisdictionNameError: They are not; the message names them.
    """
    if len({same_jurisdiction(each) for each in found}) > 1:
        raise JurisdictionNameError(
            f"{quoted(text)} may be {listed(found, 'or')}. Name one of them in full."
        )
    return found


def same_jurisdiction(title: str) -> str:
    """Return a text that is equal for titles of one jurisdiction: of one place, or in any case."""
    return place_named(title) or folded(title) or title


def no_jurisdiction(text: str, titles: Collection[str]) -> JurisdictionNameError:
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
    """Return what somebody typed between quotation marks, cut where it is long."""
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
