"""Pair the statements of two editions: by stated relations, equal texts, then words and meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from .likeness import Encode, Likeness
from .statements import Pairing, Statement, Weights


class Link(NamedTuple):
    """A relation that a source states: *left* is kept as, or replaced by, *right*.

    Attributes:
        kind: ``exactMatchOf`` or ``replacedBy``.
        origin: The source.
    """

    left: str
    kind: str
    right: str
    origin: str


def paired(
    left: Sequence[Statement], right: Sequence[Statement], links: Sequence[Link], encode: Encode
) -> list[Pairing]:
    """Return the pairings of two editions; each statement is in one of them at most.

    Args:
        links: Relations from statements of the left to statements of the right.
        encode: The text encoder; only texts that are not paired otherwise are encoded.
    """
    by_id = {each.id: each for each in left}, {each.id: each for each in right}
    weights = Weights([*left, *right])
    found, used = list[Pairing](), set[str]()

    def take(pairings: Iterable[Pairing]) -> None:
        for pairing in pairings:
            ids = {each.id for each in (*pairing.left, *pairing.right)}
            if used.isdisjoint(ids):
                used.update(ids)
                found.append(pairing)

    take(
        Pairing((each,), (by_id[1][each.id],), "same record")
        for each in left
        if each.id in by_id[1]
    )
    take(_stated(*by_id, links))
    take(_equal_texts(left, right))
    left, right = _unused(left, used), _unused(right, used)
    likeness, first = Likeness(left, right, encode, weights), len(found)
    take(likeness.proposals())
    pairs = _with_parts(found[first:], _unused(right, used), likeness)
    # The same for parts on the left: a merger is a split, seen from the other side.
    turned = _with_parts(list(map(_turned, pairs)), _unused(left, used), likeness)
    return [*found[:first], *map(_turned, turned)]


def _unused(statements: Sequence[Statement], used: Collection[str]) -> list[Statement]:
    return [each for each in statements if each.id not in used]


def _with_parts(
    pairings: Sequence[Pairing], lone: Sequence[Statement], likeness: Likeness
) -> list[Pairing]:
    """Return *pairings* with the *lone* statements that are further parts of a left one.

    A proposal may miss a part whose words differ too much.
    """
    joined = {
        pairing.left[0]: pairing
        for pairing in pairings
        if len(pairing.left) == 1 and pairing.left[0].is_near(pairing.right[0])
    }
    for part, wholes in likeness.nearest(lone, list(joined)):
        gains = {
            whole: likeness.gain(whole, joined[whole].right, part)
            for whole in wholes
            if likeness.may_be_part(whole, part)
        }
        best = max(gains, key=lambda whole: gains[whole], default=None)
        if best and gains[best]:
            joined[best] = replace(joined[best], right=(*joined[best].right, part))
    return [joined.get(pairing.left[0], pairing) for pairing in pairings]


def _turned(pairing: Pairing) -> Pairing:
    return replace(pairing, left=pairing.right, right=pairing.left)


def _stated(
    left: Mapping[str, Statement], right: Mapping[str, Statement], links: Sequence[Link]
) -> Iterator[Pairing]:
    """Yield exact matches, then successors: several of one statement, or one of several."""
    links = [link for link in links if link.left in left and link.right in right]
    groups = [[link] for link in links if link.kind == "exactMatchOf"]
    successors = defaultdict[str, list[Link]](list)
    predecessors = defaultdict[str, list[Link]](list)
    for link in links:
        if link.kind == "replacedBy":
            successors[link.left].append(link)
            predecessors[link.right].append(link)
    groups += sorted((*successors.values(), *predecessors.values()), key=len, reverse=True)
    for group in groups:
        origins = "; ".join(dict.fromkeys(link.origin for link in group))
        yield Pairing(
            tuple(left[id_] for id_ in dict.fromkeys(link.left for link in group)),
            tuple(right[id_] for id_ in dict.fromkeys(link.right for link in group)),
            f"stated: {group[0].kind} ({origins})",
        )


def _equal_texts(left: Sequence[Statement], right: Sequence[Statement]) -> Iterator[Pairing]:
    """Yield pairs with the same words, the same grade, code and headings first."""
    by_text = defaultdict[str, list[Statement]](list)
    for each in right:
        by_text[each.folded].append(each)
    pairs = [(one, other) for one in left if one.folded for other in by_text.get(one.folded, ())]
    pairs.sort(key=lambda pair: _context(*pair), reverse=True)
    yield from (Pairing((one,), (other,), "same text") for one, other in pairs)


def _context(one: Statement, other: Statement) -> tuple[int, ...]:
    return (
        one.is_near(other) + (one.levels == other.levels),
        bool(one.code) and one.code == other.code,
        one.path == other.path,
        one.record.is_leaf == other.record.is_leaf,
    )
