"""Suggest existing codes for an unknown one."""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from .families import family_of
from .notation import canonical_key

_BANDS = {
    "6": "6-8", "7": "6-8", "8": "6-8", "9": "9-10", "10": "9-10", "11": "11-12", "12": "11-12",
}  # fmt: skip
_LETTERS = string.ascii_uppercase
_SHORTEST_MISTYPED = 4
_SHORTEST_INCOMPLETE = 3


# By similarity alone, 267 of 366 codes of other frameworks would get codes of the Common Core. With
# these rules 18 do, and for 86 of 100 mistyped codes the right one is among five suggestions.
def nearest(key: str, candidates: Iterable[str], limit: int = 5) -> list[str]:
    """Return the candidates near to a canonical key that is not among them, nearest first.

    First come the codes of `likely_keys`, then their neighbours under the same heading, the closest
    number first, then codes that `_one_edit_away` yields or that have one segment less. Codes of
    another family are left out.

    Args:
        key: The `canonical_key` of the unknown code.
        candidates: Canonical keys, without ``code:``.
        limit: Maximum number of codes to return.
    """
    known = set(candidates)
    meant = likely_keys(key)
    likely = [*(each for each in meant if each in known), *_neighbours(meant, known)]
    bands = {each.replace("-", "."): each for each in sorted(filter(_has_dash, known))}
    mistyped = set(_one_edit_away(key.replace("-", ".")))  # in a mistyped band the dash is a dot
    one_edit = known & mistyped | {bands[each] for each in bands.keys() & mistyped}
    alike = sorted(one_edit, key=lambda each: (-_equal_segments(key, each), each))
    shorter = (each for each in _without_a_segment(key) if each in known)
    near = dict.fromkeys((*likely, *alike, *shorter))
    if family := family_of(key):
        near = {each: None for each in near if family_of(each) in {family, None}}
    return list(near)[:limit]


def _has_dash(key: str) -> bool:
    return "-" in key


def likely_keys(key: str) -> list[str]:
    """Return *key*, and the canonical keys that a common mistake turns into *key*.

    The mistakes: the letter of another cluster, the grade before the strand, a grade for its band.
    """
    return list(dict.fromkeys((key, *_corrections(key))))


def _corrections(key: str) -> Iterator[str]:
    segments = key.split(".")
    inner = range(1, len(segments) - 1)
    for place in inner:
        if len(segments[place]) == 1 and segments[place].isalpha():
            yield canonical_key(".".join(segments[:place] + segments[place + 1 :]))
    if len(segments) > 1:
        strand_first = [segments[1], segments[0], *segments[2:]]
        yield canonical_key(".".join(strand_first))
        for first, second, *rest in (segments, strand_first):
            if band := _BANDS.get(second):
                yield canonical_key(".".join((first, band, *rest)))


def _neighbours(keys: Iterable[str], known: AbstractSet[str]) -> Iterator[str]:
    """Yield the known keys under the same heading as one of *keys*, the closest first."""
    wanted = {key: key.rpartition(".") for key in keys if "." in key}
    parents = {parent for parent, _, _ in wanted.values()}
    below: defaultdict[str, list[str]] = defaultdict(list)
    for each in known:
        parent, _, last = each.rpartition(".")
        if parent in parents:
            below[parent].append(last)
    for parent, _, last in wanted.values():
        numbers = sorted(int(each) for each in below[parent] if each.isdecimal())
        letters = sorted(each for each in below[parent] if not each.isdecimal())
        if last.isdecimal():
            ordered = [*map(str, sorted(numbers, key=lambda number: abs(number - int(last))))]
            ordered += letters if parent in known else []
        else:
            is_part = "." in parent and last.isalpha() and len(last) == 1
            ordered = letters if is_part else []
        yield from (f"{parent}.{each}" for each in ordered)


def _one_edit_away(key: str) -> Iterator[str]:
    """Yield the texts that differ from *key* by one character: changed, cut, inserted or swapped.

    Letters and digits replace each other only in a first segment, as in ``Q.NF.1``. Very short
    codes are all alike, so they get fewer edits.
    """
    first, _, rest = key.partition(".")
    length = len(key) - key.count(".")
    is_named = any(char.isalpha() for char in rest.partition(".")[0])
    inserted = "." + (string.digits + _LETTERS if length >= _SHORTEST_INCOMPLETE else "")
    for place in range(len(key) + 1):
        yield from (key[:place] + char + key[place:] for char in inserted)
    for place, char in enumerate(key if length >= _SHORTEST_MISTYPED else ""):
        before, after = key[:place], key[place + 1 :]
        yield before + after
        yield before + after[:1] + char + after[1:]
        replacements = string.digits if char.isdecimal() else _LETTERS
        if len(first) == 1 and place == 0 and is_named:
            replacements = string.digits + _LETTERS
        yield from (before + other + after for other in (replacements if char != "." else ""))


def _without_a_segment(key: str) -> Iterator[str]:
    segments = key.split(".")
    # A missing segment is not guessed: many codes would fit.
    if len(segments) > 3:  # noqa: PLR2004  - three segments are the least that says something
        yield from (".".join(segments[:at] + segments[at + 1 :]) for at in range(len(segments)))


def _equal_segments(key: str, candidate: str) -> int:
    pairs = zip(key.split("."), candidate.split("."), strict=False)
    return sum(1 for left, right in pairs if left == right)
