"""Read a text: its meaningful words and its quantities, clause by clause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from .lexicon import (
    ALTERNATIVES,
    CONJUNCTIONS,
    CONTRASTS,
    DENIALS,
    GENERIC_WORDS,
    NEGATORS,
    STOP_WORDS,
    UNITS,
)
from .quantities import Quantity, number_value, quantity_at
from .stems import stem
from .tokens import Token, tokens_of

_NEGATED_WORDS: Final = 6
"""How far a negation reaches, in words, if its part does not end before."""
_JOINERS: Final = frozenset("-/+")
_DENIED: Final = re.compile(DENIALS, re.IGNORECASE)


@dataclass(slots=True)
class Part:
    """A part of a clause, such as the text between two commas.

    Attributes:
        words: The meaningful words by their stems. The stem of a negated word begins with "!".
    """

    words: dict[str, str] = field(default_factory=dict[str, str])
    quantities: list[Quantity] = field(default_factory=list[Quantity])


@dataclass(slots=True)
class Clause:
    """A sentence, or a side of "but".

    Attributes:
        alternatives: For each stem that "or" joins to others, all of them.
    """

    parts: list[Part] = field(default_factory=lambda: [Part()])
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
            clauses.append(_ClauseReader(pending, is_denied=is_denied).read())
            pending = []
        else:
            pending.append(token)
    clauses.append(_ClauseReader(pending, is_denied=is_denied).read())
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
    return token.kind != "break" or token.text in _JOINERS


def _number_follows(tokens: Sequence[Token]) -> list[bool]:
    """Return for each place whether a number follows in the same part."""
    found = [False]
    for token in reversed(tokens):
        found.append(_goes_on(token) and (found[-1] or number_value(token) is not None))
    return found[::-1]


class _ClauseReader:
    """Reads one clause from its tokens."""

    def __init__(self, tokens: Sequence[Token], *, is_denied: bool) -> None:
        self._tokens = tokens
        self._is_denied = is_denied  # somewhere in the text
        self._numbers = _number_follows(tokens)
        self._clause = Clause()
        self._negated = self._reach = 0
        self._chain = list[tuple[str, str]]()
        self._between = list[str]()

    def read(self) -> Clause:
        """Return the clause."""
        place = 0
        self._begin_part(0)
        while place < len(self._tokens):
            token = self._tokens[place]
            if number_value(token) is not None or token.text in ("decade", "decades"):
                place = self._read_number(place)
                continue
            place += 1
            if self._ends_part(token, place):
                self._begin_part(place)
            elif token.kind == "word":
                self._read_word(token, place)
            if token.kind == "break" or token.text in ALTERNATIVES:
                self._between.append(token.text)
        self._end_chain()
        return self._clause

    def _ends_part(self, token: Token, place: int) -> bool:
        if token.kind == "break":
            return not _goes_on(token)
        has_quantity = bool(self._clause.parts[-1].quantities)
        return has_quantity and token.text in CONJUNCTIONS and self._numbers[place]

    def _read_number(self, place: int) -> int:
        quantity, end = quantity_at(self._tokens, place)
        if quantity is not None:
            self._clause.parts[-1].quantities.append(quantity)
        elif self._tokens[place].kind == "number":
            self._add(self._tokens[place])
        return end

    def _begin_part(self, place: int) -> None:
        if self._clause.parts[-1].words or self._clause.parts[-1].quantities:
            self._clause.parts.append(Part())
        is_new = place == 0 or self._tokens[place - 1].kind == "break"
        if self._is_denied and is_new:
            rest = (self._tokens[each] for each in range(place, len(self._tokens)))
            written = " ".join(each.written for each in takewhile(_goes_on, rest))
            self._reach = len(self._tokens) if _DENIED.search(written) else 0
        self._negated = self._reach

    def _read_word(self, token: Token, place: int) -> None:
        following = self._tokens[place].text if place < len(self._tokens) else ""
        is_negation = token.text in NEGATORS or token.text.endswith("n't")
        if is_negation and following != "only":
            self._negated = max(self._negated, 1 if token.text == "non" else _NEGATED_WORDS)
            return
        is_letter = len(token.text) == 1 and token.text.isascii()
        is_skill = token.written.isupper() and token.text != "i" and (token.text, place) != ("a", 1)
        is_name = token.text in ("it", "us") and token.written.isupper()
        is_empty = not is_name and (token.text in STOP_WORDS or token.text in GENERIC_WORDS)
        if is_skill if is_letter else not is_empty and token.text not in UNITS:
            self._add(token)
        elif not is_letter and token.text in GENERIC_WORDS:
            self._between.append(token.text)
        self._negated = max(0, self._negated - 1)

    def _add(self, token: Token) -> None:
        key = ("!" if self._negated else "") + stem(token.text)
        self._clause.parts[-1].words.setdefault(key, token.text)
        joins = [each for each in self._between if each in ALTERNATIVES or each == ","]
        if self._between != joins or not joins:
            self._end_chain()
        self._chain.append(("or" if ALTERNATIVES.intersection(joins) else ",", key))
        self._between = []

    def _end_chain(self) -> None:
        """Keep the words that "or" and commas join, if there is an "or" among them."""
        if any(joint == "or" for joint, _ in self._chain[1:]):
            keys = [key for _, key in self._chain]
            self._clause.alternatives |= dict.fromkeys(keys, keys)
        self._chain = []
