"""Read a text: its meaningful words and its quantities, clause by clause."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from .lexicon import (
    ALTERNATIVES,
    CONTRASTS,
    DENIALS,
    GENERIC_WORDS,
    NEGATORS,
    STOP_WORDS,
    UNITS,
)
from .numbers import is_number, number_value
from .phrases import JOINERS, Phrases
from .quantities import Found, Quantity, quantity_at
from .stems import stem
from .tokens import Token, tokens_of

_NEGATED_WORDS: Final = 6
"""How far a negation reaches, in words, if its part does not end before."""
_DENIED: Final = re.compile(DENIALS, re.IGNORECASE)


class Counted(NamedTuple):
    """A quantity with its phrase.

    Attributes:
        words: The stems of its phrase.
        is_named: True if the quantity itself says of what it is.
    """

    quantity: Quantity
    words: list[str]
    is_named: bool


@dataclass(slots=True)
class Clause:
    """A sentence, or a side of "but".

    Attributes:
        words: The meaningful words by their stems. The stem of a negated word begins with "!".
        alternatives: For each stem that "or" joins to others, all of them.
    """

    words: dict[str, str] = field(default_factory=dict[str, str])
    quantities: list[Counted] = field(default_factory=list[Counted])
    alternatives: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def read(text: str, *, is_claim: bool = False) -> list[Clause]:
    """Return the clauses of a text.

    Args:
        is_claim: An intention, such as "would like to learn Go", proves nothing.
    """
    clauses, pending = list[Clause](), list[Token]()
    is_denied = is_claim and _DENIED.search(text) is not None
    for token in tokens_of(text):
        is_exception = bool(pending) and pending[-1].text in ("everything", "anything")
        if token.kind == "stop" or (token.text in CONTRASTS and not is_exception):
            clauses.append(_ClauseReader(pending, is_claim=is_claim, is_denied=is_denied).read())
            pending = []
        else:
            pending.append(token)
    clauses.append(_ClauseReader(pending, is_claim=is_claim, is_denied=is_denied).read())
    return clauses


def surface_words(text: str) -> list[str]:
    """Return the words of a tag in lower case, with single letters that are skills."""
    return [
        token.text
        for token in tokens_of(text)
        if token.kind in ("word", "number") and token.text not in ("a", "i")
    ]


def _goes_on(token: Token) -> bool:
    """Return True if a token ends no part of a clause."""
    return token.kind != "break" or token.text in JOINERS


class _ClauseReader:
    """Reads one clause from its tokens."""

    def __init__(self, tokens: Sequence[Token], *, is_claim: bool, is_denied: bool) -> None:
        self._tokens = tokens
        self._is_claim = is_claim
        self._is_denied = is_denied  # somewhere in the text
        self._clause = Clause()
        self._places = dict[int, str]()
        self._found = list[Found]()
        self._negated = 0
        self._chain = list[tuple[str, str]]()
        self._between = list[str]()

    def read(self) -> Clause:
        """Return the clause."""
        place = 0
        self._begin_part(0)
        while place < len(self._tokens):
            token = self._tokens[place]
            if is_number(self._tokens, place):
                place = self._read_number(place)
                continue
            place += 1
            if token.kind == "break" and not _goes_on(token):
                self._begin_part(place)
            elif token.kind == "word":
                self._read_word(token, place)
            if token.kind == "break" or token.text in ALTERNATIVES:
                self._between.append(token.text)
        self._end_chain()
        self._count()
        return self._clause

    def _read_number(self, place: int) -> int:
        found, end = quantity_at(self._tokens, place)
        value = number_value(self._tokens[place])
        is_name = found is None or (found.is_version and math.isfinite(found.quantity.high))
        if found is not None and (self._is_claim or not is_name):
            self._found.append(found)
        if is_name and value is not None and self._tokens[place].text != "one":
            self._add(f"{value:.12g}", f"{value:.12g}", place)
        return end

    def _count(self) -> None:
        phrases = Phrases(self._tokens, self._places, self._found, is_claim=self._is_claim)
        for found in self._found:
            places, is_named = phrases.of(found)
            words = list(dict.fromkeys(self._places[place] for place in places))
            self._clause.quantities.append(Counted(found.quantity, words, is_named))

    def _begin_part(self, place: int) -> None:
        self._negated = 0
        if self._is_denied:
            rest = (self._tokens[each] for each in range(place, len(self._tokens)))
            written = " ".join(each.written for each in takewhile(_goes_on, rest))
            self._negated = len(self._tokens) if _DENIED.search(written) else 0

    def _read_word(self, token: Token, place: int) -> None:
        is_negation = token.text in NEGATORS or token.text.endswith("n't")
        if is_negation and not self._is_bound(place):
            self._negated = max(self._negated, 1 if token.text == "non" else _NEGATED_WORDS)
            return
        is_letter = len(token.text) == 1 and token.text.isascii()
        is_skill = token.written.isupper() and token.text != "i" and (token.text, place) != ("a", 1)
        is_name = token.text in ("it", "us") and token.written.isupper()
        is_empty = not is_name and (token.text in STOP_WORDS or token.text in GENERIC_WORDS)
        if is_skill if is_letter else not is_empty and token.text not in UNITS:
            self._add(stem(token.text), token.text, place - 1)
        elif not is_letter and token.text in GENERIC_WORDS:
            self._between.append(token.text)
        self._negated = max(0, self._negated - 1)

    def _is_bound(self, place: int) -> bool:
        """Return True after "not" if it negates no word: "not only", "not more than"."""
        following = [each.text for each in self._tokens[place : place + 2]]
        return following[:1] == ["only"] or following[1:] == ["than"]

    def _add(self, key: str, text: str, place: int) -> None:
        key = f"!{key}" if self._negated else key
        self._clause.words.setdefault(key, text)
        self._places[place] = key
        joins = [each for each in self._between if each in ALTERNATIVES or each == ","]
        if not joins or self._between != joins:
            self._end_chain()
        self._chain.append(("or" if ALTERNATIVES.intersection(joins) else ",", key))
        self._between = []

    def _end_chain(self) -> None:
        """Keep the words that "or" and commas join, if there is an "or" among them."""
        if len(self._chain) > 1 and any(joint == "or" for joint, _ in self._chain[1:]):
            keys = [key for _, key in self._chain]
            self._clause.alternatives |= dict.fromkeys(keys, keys)
        self._chain = []
