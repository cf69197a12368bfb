"""Find the words that a quantity belongs to: Java, and not Go, in "five years of Java with Go".

    five years of PHRASE        a five-year PHRASE      PHRASE of five years
    PHRASE for five years       five years in PHRASE    PHRASE with five years of experience
    PHRASE (five years)         PHRASE: five years      PHRASE, five years

A phrase ends at a turn: a comma, "that", "with", "now", and "and" or "/" before another phrase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from .lexicon import ARTICLES, CONJUNCTIONS, GAINS, GENERIC_WORDS, RELATIVES, STOP_WORDS, TURNS
from .quantities import TIMES, Found
from .tokens import Token

JOINERS: Final = frozenset("-/+")
"""Breaks that end no part of a clause."""
_APPOSITIONS: Final = {"(": (")",), ":": ("", ","), "|": ("", ","), "\u2013": ("", ","), ",": ("",)}
"""For each break between a phrase and its quantity, the tokens that may follow the quantity."""
_PERSON: Final = re.compile(".{3,}(?:er|or|ist|ant|ent|ee|se)s?")
_SELF: Final = frozenset(("am", "as", "be", "been", "being", "i'm", "is", "was"))
_NOUN_WORDS: Final = 3
_REACH: Final = 20
"""How many tokens a phrase has on each side of its quantity, so that long texts take no square."""


class Phrase(NamedTuple):
    """The places of the words that a quantity belongs to.

    Attributes:
        is_named: True if the quantity itself says of what it is, as "five years of Go" does.
    """

    places: list[int]
    is_named: bool


class Phrases:
    """Finds the phrases of the quantities in a clause.

    Args:
        words: The places of meaningful words.
        is_claim: True if the time of somebody or something else proves nothing.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        words: Mapping[int, object],
        found: Sequence[Found],
        *,
        is_claim: bool,
    ) -> None:
        self._tokens, self._words, self._is_claim = tokens, words, is_claim
        self._starts = {each.start: each.quantity.nouns for each in found}
        self._ends = {each.end: each.quantity.nouns for each in found}

    def of(self, found: Found) -> Phrase:
        """Return the phrase of a quantity.

        What is said of the quantity itself counts alone: "a team of five", "five years of Go".
        Else all words up to the next turn count, before it and after it.
        """
        if self._is_claim and (self._is_of_another(found) or self._is_object(found)):
            return Phrase([], is_named=True)
        if found.is_attribute and (described := self._described(found)):
            return Phrase(described, is_named=True)
        if found.holder is not None:
            held = self._held(found.holder)
            return Phrase([*held, *self._after(found, has_words=bool(held))], is_named=True)
        after = self._after(found, has_words=False)
        if after and self._text(found.end) == "of":
            return Phrase(after, is_named=True)
        before, edge = self._before(found, found.start)
        if before:
            return Phrase([*before, *self._after(found, has_words=True)], is_named=False)
        is_with = self._text(edge) == "with"  # a nurse with five years of experience
        if not after and (is_with or self._is_apposition(found, edge)):
            after, _ = self._before(found, edge)
        return Phrase(after, is_named=False)

    def _is_of_another(self, found: Found) -> bool:
        """Return True for the time of somebody else: "taught a nurse with five years of it"."""
        end = found.start - 1
        if self._text(end) != "with" or TIMES.isdisjoint(found.quantity.nouns):
            return False
        if self._text(end - 1).endswith("s") and _PERSON.fullmatch(self._text(end - 1)):
            return True
        for place in range(end - 1, max(0, end - _REACH), -1):
            before = self._tokens[place - 1]
            if self._tokens[place].kind == "break" or before.kind == "break":
                return False
            if self._text(place) in ARTICLES:
                return before.text not in _SELF
        return False

    def _is_object(self, found: Found) -> bool:
        """Return True for time that was worked on: "analysed five years of sales data"."""
        is_time = self._text(found.end) == "of" and not TIMES.isdisjoint(found.quantity.nouns)
        is_verb = found.start - 1 in self._words and self._text(found.start - 1) not in GAINS
        return is_time and is_verb

    def _is_apposition(self, found: Found, edge: int) -> bool:
        """Return True for "Java (five years)", and after a comma for nothing but a name."""
        follower = self._text(found.end)
        if self._text(edge) == ",":
            parts = (self._tokens[place].kind != "break" for place in range(edge - 1, -1, -1))
            length = sum(takewhile(bool, parts))
            if not all(map(self._is_noun, range(edge - length, edge))):
                return False
        return edge == found.start - 1 and follower in _APPOSITIONS.get(self._text(edge), ())

    def _described(self, found: Found) -> list[int]:
        """Return the noun after an attribute, such as "plan" in "a five-year plan for schools"."""
        places = range(found.end, min(found.end + _NOUN_WORDS, len(self._tokens)))
        return [place for place in takewhile(self._is_noun, places) if place in self._words]

    def _held(self, holder: int) -> list[int]:
        """Return the noun that has a quantity: "rescue" in "rescue experience of five years".

        The verb before its article counts, too: "led" in "led a choir of forty".
        """
        places = range(holder, max(holder - _NOUN_WORDS, -1), -1)
        nouns = list(takewhile(self._is_noun, places))
        held = [place for place in nouns if place in self._words][:1]
        verb = nouns[-1] - 2 if nouns else -1
        return [*held, verb] if verb in self._words and self._text(verb + 1) in ARTICLES else held

    def _before(self, found: Found, start: int) -> tuple[list[int], int]:
        """Return the words before a place, back to the last turn, and the place of that turn.

        Words between two quantities of the same noun belong to neither.
        """
        edge = start - 1
        while edge >= max(0, start - _REACH):
            if self._ends.get(edge + 1) == found.quantity.nouns:
                return [], edge
            has_words = edge - 1 in self._words or bool(_PERSON.fullmatch(self._text(edge - 1)))
            if self._is_turn(edge, has_words=has_words):
                break
            edge -= 1
        return [place for place in range(edge + 1, start) if place in self._words], edge

    def _after(self, found: Found, *, has_words: bool) -> list[int]:
        """Return the words after a quantity, up to the next turn.

        Args:
            has_words: True if its phrase has words already: then "with" begins another one.
        """
        places = list[int]()
        for place in range(found.end, min(found.end + _REACH, len(self._tokens))):
            if self._starts.get(place) == found.quantity.nouns:
                return []
            if self._is_turn(place, has_words=has_words or bool(places)):
                break
            if place in self._words:
                places.append(place)
        return places

    def _is_turn(self, place: int, *, has_words: bool) -> bool:
        """Return True if another phrase begins after a place."""
        token = self._tokens[place]
        if token.text in CONJUNCTIONS or token.text == "/":
            return not self._joins(place)
        is_end = token.kind == "break" and token.text not in JOINERS
        return is_end or token.text in RELATIVES or (has_words and token.text in TURNS)

    def _joins(self, place: int) -> bool:
        """Return True for "and" between two words of one phrase: "maths and physics for a year"."""
        if not (place - 1 in self._words and place + 1 in self._words):
            return False
        if place + 2 >= len(self._tokens):
            return True
        follower = self._tokens[place + 2]
        is_empty = follower.text in STOP_WORDS or follower.text in GENERIC_WORDS
        return follower.kind != "word" or (is_empty and follower.text not in ARTICLES)

    def _is_noun(self, place: int) -> bool:
        token = self._tokens[place]
        return token.kind == "word" and token.text not in STOP_WORDS

    def _text(self, place: int) -> str:
        return self._tokens[place].text if 0 <= place < len(self._tokens) else ""
