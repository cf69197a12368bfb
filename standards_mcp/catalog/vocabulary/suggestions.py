"""The codes that somebody may have meant by one that does not exist."""

from __future__ import annotations

import difflib
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from .notation import canonical_key

_SHORT_LIST = 200
_MOST_FIRST_SEGMENTS = 2_000
_BANDS = {
    "6": "6-8", "7": "6-8", "8": "6-8", "9": "9-10", "10": "9-10", "11": "11-12", "12": "11-12",
}  # fmt: skip


def nearest(key: str, candidates: Iterable[str], limit: int = 5) -> list[str]:
    """Return the candidates nearest to a canonical key that is not among them, nearest first.

    First come the codes that are the same but for a usual slip: the letter of another cluster,
    the grade before the strand, a grade in place of its band. Then those that differ from one of
    these in the last number only, the closest number first; then those that keep most segments at
    the beginning and the end of *key*, and of them those that take the fewest edits. What
    resembles *key* in none of this is left out.

    Args:
        key: What `canonical_key` returned for the code that was missed.
        candidates: Canonical keys, without ``code:``.
        limit: The greatest length of the answer.
    """
    known = set(candidates)
    meant = meant_by(key)
    likely = [*(each for each in meant if each in known), *_siblings(meant, known)]
    resembling = () if len(likely) >= limit else _resembling(key, known, limit + len(likely))
    return list(dict.fromkeys((*likely, *resembling)))[:limit]


def meant_by(key: str) -> list[str]:
    """Return *key*, and the canonical keys that are the same but for a usual slip."""
    return list(dict.fromkeys((key, *_without_slips(key))))


def _without_slips(key: str) -> Iterator[str]:
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


def _siblings(meant: Iterable[str], known: AbstractSet[str]) -> Iterator[str]:
    """Yield the known codes that differ from those meant in the last number, the closest first."""
    for code in meant:
        parent, _, last = code.rpartition(".")
        if not parent or not last.isdecimal():
            continue
        numbers = {
            int(number): each
            for each in known
            if each.startswith(f"{parent}.") and (number := each[len(parent) + 1 :]).isdecimal()
        }
        yield from (
            numbers[each] for each in sorted(numbers, key=lambda n: (abs(n - int(last)), n))
        )


def _resembling(key: str, candidates: Iterable[str], limit: int) -> list[str]:
    wanted = key.split(".")
    matcher = difflib.SequenceMatcher(b=key, autojunk=False)

    def roughly(candidate: str) -> tuple[int, int, str]:
        return -_kept(wanted, candidate), abs(len(candidate) - len(key)), candidate

    def exactly(candidate: str) -> tuple[int, float, str]:
        matcher.set_seq1(candidate)
        return -_kept(wanted, candidate), -matcher.ratio(), candidate

    short_list = heapq.nsmallest(_SHORT_LIST, _kindred(wanted, candidates, limit), key=roughly)
    return heapq.nsmallest(limit, short_list, key=exactly)


def _kindred(wanted: list[str], candidates: Iterable[str], enough: int) -> set[str]:
    """Return candidates that begin like *wanted*; where those are few, also like endings."""
    by_first: defaultdict[str, list[str]] = defaultdict(list)
    for each in candidates:
        by_first[each.partition(".")[0]].append(each)
    same = first = by_first.get(wanted[0]) or _similar_first(wanted[0], by_first)
    for length in range(2, len(wanted)):
        prefix = ".".join(wanted[:length]) + "."
        narrower = [each for each in same if each.startswith(prefix)]
        if len(narrower) < enough:
            break
        same = narrower
    return set(same) if same is not first else {*first, *_ending_like(wanted, by_first)}


def _similar_first(first: str, by_first: Mapping[str, list[str]]) -> list[str]:
    if len(by_first) > _MOST_FIRST_SEGMENTS:
        return []
    similar = difflib.get_close_matches(first, by_first)
    return [each for known in similar for each in by_first[known]]


def _ending_like(wanted: list[str], by_first: Mapping[str, list[str]]) -> Iterable[str]:
    rest = ".".join(wanted[1:])
    ending = f".{rest}"
    if "." not in rest:  # one segment, such as a number, ends every other code
        return ()
    every = itertools.chain.from_iterable(by_first.values())
    return (each for each in every if each.endswith(ending) or each == rest)


def _kept(wanted: list[str], candidate: str) -> int:
    segments = candidate.split(".")
    leading = _shared(wanted, segments)
    return leading + _shared(wanted[leading:][::-1], segments[leading:][::-1])


def _shared(left: list[str], right: list[str]) -> int:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    return sum(1 for _ in same)
