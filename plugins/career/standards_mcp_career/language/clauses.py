"""Parse a text into clauses, with meaningful words, and quantities with their phrases.

    five years of PHRASE        a five-year PHRASE      PHRASE of five years
    PHRASE for five years       five years in PHRASE    PHRASE with five years of experience
    PHRASE (five years)         PHRASE: five years      PHRASE, five years

A phrase ends at a turn: a comma, "that", "with", "now", or "and" or "/" before another phrase.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from .quantities import (
    TIME_DIMENSIONS,
    Mention,
    Quantity,
    is_number,
    number_value,
    quantity_at,
)
from .tokens import DENIALS, EMPTY, UNITS, WORDS, Token, stem, texts, tokens_of

JOINERS: Final = frozenset("-/+")
"""Breaks that do not end a part of a clause."""
_APPOSITIONS: Final = {"(": (")",), ":": ("", ","), "|": ("", ","), "\u2013": ("", ","), ",": ("",)}
"""For each break between a phrase and its quantity, the tokens that may follow the quantity."""
_PERSON: Final = re.compile(".{3,}(?:er|or|ist|ant|ent|ee|se)s?")
_SELF: Final = frozenset(("am", "as", "be", "been", "being", "i'm", "is", "was"))
_MAX_NOUN_WORDS: Final = 3
_MAX_PHRASE_TOKENS: Final = 20
"""The most tokens of a phrase on each side of its quantity; else the time would be quadratic."""


_MAX_NEGATED_WORDS: Final = 6
"""The most words that a negation negates. The end of a part of the clause ends it, too."""


class QuantityPhrase(NamedTuple):
    """A quantity with its phrase.

    Attributes:
        words: The stems of the words in the phrase.
        is_named: True if the quantity names its subject.
    """

    quantity: Quantity
    words: list[str]
    is_named: bool


@dataclass(slots=True)
class Clause:
    """A sentence, or a side of "but".

    Attributes:
        words: The meaningful words by their stems. The stem of a negated word begins with "!".
        alternatives: For each stem that "or" joins to other stems, all of these stems.
    """

    words: dict[str, str] = field(default_factory=dict[str, str])
    quantities: list[QuantityPhrase] = field(default_factory=list[QuantityPhrase])
    alternatives: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def read_clauses(text: str, *, is_claim: bool = False) -> list[Clause]:
    """Return the clauses of a text.

    Args:
        is_claim: True for a claim. In a claim, an intention, such as "would like to learn Go",
            proves nothing.
    """
    clauses, pending = list[Clause](), list[Token]()
    is_denied = is_claim and DENIALS.search(text) is not None
    for token in tokens_of(text):
        is_exception = bool(pending) and pending[-1].text in ("everything", "anything")
        if token.kind == "stop" or (token.is_a("contrast") and not is_exception):
            clauses.append(_ClauseReader(pending, is_claim=is_claim, is_denied=is_denied).read())
            pending = []
        else:
            pending.append(token)
    clauses.append(_ClauseReader(pending, is_claim=is_claim, is_denied=is_denied).read())
    return clauses


def surface_words(text: str) -> list[str]:
    """Return the words and numbers of a tag in lower case, without "a" and "i"."""
    return [
        token.text
        for token in tokens_of(text)
        if token.kind in ("word", "number") and token.text not in ("a", "i")
    ]


def _continues_part(token: Token) -> bool:
    """Return True if a token does not end a part of a clause."""
    return token.kind != "break" or token.text in JOINERS


class _ClauseReader:
    """Reads one clause from its tokens."""

    def __init__(self, tokens: Sequence[Token], *, is_claim: bool, is_denied: bool) -> None:
        self._tokens = tokens
        self._is_claim = is_claim
        self._is_denied = is_denied  # a denial is somewhere in the text
        self._clause = Clause()
        self._stem_at = dict[int, str]()
        self._mentions = list[Mention]()
        self._negated_left = 0
        self._chain = list[tuple[str, str]]()
        self._joiners = list[str]()

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
            if token.kind == "break" and not _continues_part(token):
                self._begin_part(place)
            elif token.kind == "word":
                self._read_word(token, place)
            if token.kind == "break" or token.is_a("alternative"):
                self._joiners.append(token.text)
        self._end_chain()
        self._nouns_from = {each.start: each.quantity.nouns for each in self._mentions}
        self._nouns_to = {each.end: each.quantity.nouns for each in self._mentions}
        for mention in self._mentions:
            places, is_named = self._phrase(mention)
            words = list(dict.fromkeys(self._stem_at[place] for place in places))
            self._clause.quantities.append(QuantityPhrase(mention.quantity, words, is_named))
        return self._clause

    def _read_number(self, place: int) -> int:
        mention, end = quantity_at(self._tokens, place)
        value = number_value(self._tokens[place])
        is_name = mention is None or (mention.is_version and math.isfinite(mention.quantity.high))
        if mention is not None and (self._is_claim or not is_name):
            self._mentions.append(mention)
        if is_name and value is not None and self._tokens[place].text != "one":
            self._add_word(f"{value:.12g}", f"{value:.12g}", place)
        return end

    def _begin_part(self, place: int) -> None:
        self._negated_left = 0
        if self._is_denied:
            rest = (self._tokens[at] for at in range(place, len(self._tokens)))
            written = " ".join(token.written for token in takewhile(_continues_part, rest))
            self._negated_left = len(self._tokens) if DENIALS.search(written) else 0

    def _read_word(self, token: Token, place: int) -> None:
        is_negation = token.is_a("negator") or token.text.endswith("n't")
        if is_negation and not self._is_bound(place):
            self._negated_left = max(
                self._negated_left, 1 if token.text == "non" else _MAX_NEGATED_WORDS
            )
            return
        is_letter = len(token.text) == 1 and token.text.isascii()
        is_skill = token.written.isupper() and token.text != "i" and (token.text, place) != ("a", 1)
        is_name = token.text in ("it", "us") and token.written.isupper()
        is_empty = not is_name and token.text in EMPTY
        if is_skill if is_letter else not is_empty and token.text not in UNITS:
            self._add_word(stem(token.text), token.text, place - 1)
        elif not is_letter and token.is_a("generic"):
            self._joiners.append(token.text)
        self._negated_left = max(0, self._negated_left - 1)

    def _is_bound(self, place: int) -> bool:
        """Return True if a negation before a place negates no word: "not only", "not more than"."""
        following = texts(self._tokens, place, place + 2)
        return following[:1] == ["only"] or following[1:] == ["than"]

    def _add_word(self, key: str, text: str, place: int) -> None:
        key = f"!{key}" if self._negated_left else key
        self._clause.words.setdefault(key, text)
        self._stem_at[place] = key
        joins = [text for text in self._joiners if text in WORDS["alternative"] or text == ","]
        if not joins or self._joiners != joins:
            self._end_chain()
        self._chain.append(("or" if WORDS["alternative"].intersection(joins) else ",", key))
        self._joiners = []

    def _end_chain(self) -> None:
        """Store words joined by "or" and commas as alternatives, if there is an "or"."""
        if len(self._chain) > 1 and any(joint == "or" for joint, _ in self._chain[1:]):
            keys = [key for _, key in self._chain]
            self._clause.alternatives |= dict.fromkeys(keys, keys)
        self._chain = []

    def _phrase(self, mention: Mention) -> tuple[list[int], bool]:
        """Return the places of the words in the phrase of a quantity, and if it names its subject.

        If the quantity names its subject, only the subject counts: "a team of five", "five years
        of Go". Otherwise all words between the turns on both sides count.
        """
        if self._is_claim and (self._is_of_another_person(mention) or self._is_object(mention)):
            return [], True
        if mention.is_attribute and (described := self._described_noun(mention)):
            return described, True
        if mention.holder is not None:
            held = self._holder_words(mention.holder)
            return [*held, *self._after(mention, has_words=bool(held))], True
        after = self._after(mention, has_words=False)
        if after and self._text(mention.end) == "of":
            return after, True
        before, edge = self._before(mention, mention.start)
        if before:
            return [*before, *self._after(mention, has_words=True)], False
        is_with = self._text(edge) == "with"  # a nurse with five years of experience
        if not after and (is_with or self._is_apposition(mention, edge)):
            after, _ = self._before(mention, edge)
        return after, False

    def _is_of_another_person(self, mention: Mention) -> bool:
        """Return True for the time of another person: "taught a nurse with five years of it"."""
        end = mention.start - 1
        if self._text(end) != "with" or TIME_DIMENSIONS.isdisjoint(mention.quantity.nouns):
            return False
        if self._text(end - 1).endswith("s") and _PERSON.fullmatch(self._text(end - 1)):
            return True
        for place in range(end - 1, max(0, end - _MAX_PHRASE_TOKENS), -1):
            before = self._tokens[place - 1]
            if self._tokens[place].kind == "break" or before.kind == "break":
                return False
            if self._tokens[place].is_a("article"):
                return before.text not in _SELF
        return False

    def _is_object(self, mention: Mention) -> bool:
        """Return True for time that was worked on: "analysed five years of sales data"."""
        is_time = not TIME_DIMENSIONS.isdisjoint(mention.quantity.nouns)
        is_of, before = self._text(mention.end) == "of", mention.start - 1
        return (
            is_time and is_of and before in self._stem_at and not self._tokens[before].is_a("gain")
        )

    def _is_apposition(self, mention: Mention, edge: int) -> bool:
        """Return True for "Java (five years)"; before a comma, only nouns may be the phrase."""
        follower = self._text(mention.end)
        if self._text(edge) == ",":
            parts = (self._tokens[place].kind != "break" for place in range(edge - 1, -1, -1))
            length = sum(takewhile(bool, parts))
            if not all(map(self._is_noun, range(edge - length, edge))):
                return False
        return edge == mention.start - 1 and follower in _APPOSITIONS.get(self._text(edge), ())

    def _described_noun(self, mention: Mention) -> list[int]:
        """Return the noun after an attribute, such as "plan" in "a five-year plan for schools"."""
        places = range(mention.end, min(mention.end + _MAX_NOUN_WORDS, len(self._tokens)))
        return [place for place in takewhile(self._is_noun, places) if place in self._stem_at]

    def _holder_words(self, holder: int) -> list[int]:
        """Return the noun that has a quantity: "rescue" in "rescue experience of five years".

        The verb before the noun's article counts, too: "led" in "led a choir of forty".
        """
        places = range(holder, max(holder - _MAX_NOUN_WORDS, -1), -1)
        nouns = list(takewhile(self._is_noun, places))
        held = [place for place in nouns if place in self._stem_at][:1]
        verb = nouns[-1] - 2 if nouns else -1
        has_verb = verb in self._stem_at and self._tokens[verb + 1].is_a("article")
        return [*held, verb] if has_verb else held

    def _before(self, mention: Mention, start: int) -> tuple[list[int], int]:
        """Return the words between the last turn and *start*, and the place of the turn.

        Words between two quantities of the same noun belong to neither quantity.
        """
        edge = start - 1
        while edge >= max(0, start - _MAX_PHRASE_TOKENS):
            if self._nouns_to.get(edge + 1) == mention.quantity.nouns:
                return [], edge
            has_words = edge - 1 in self._stem_at or bool(_PERSON.fullmatch(self._text(edge - 1)))
            if self._is_turn(edge, has_words=has_words):
                break
            edge -= 1
        return [place for place in range(edge + 1, start) if place in self._stem_at], edge

    def _after(self, mention: Mention, *, has_words: bool) -> list[int]:
        """Return the words after a quantity, up to the next turn.

        Args:
            has_words: True if the phrase has words already. Then "with" begins another phrase.
        """
        places = list[int]()
        for place in range(mention.end, min(mention.end + _MAX_PHRASE_TOKENS, len(self._tokens))):
            if self._nouns_from.get(place) == mention.quantity.nouns:
                return []
            if self._is_turn(place, has_words=has_words or bool(places)):
                break
            if place in self._stem_at:
                places.append(place)
        return places

    def _is_turn(self, place: int, *, has_words: bool) -> bool:
        """Return True if another phrase begins after a place."""
        token = self._tokens[place]
        if token.is_a("conjunction") or token.text == "/":
            return not self._joins(place)
        is_end = token.kind == "break" and token.text not in JOINERS
        return is_end or token.is_a("relative") or (has_words and token.is_a("turn"))

    def _joins(self, place: int) -> bool:
        """Return True for "and" between two words of one phrase: "maths and physics for a year"."""
        if not (place - 1 in self._stem_at and place + 1 in self._stem_at):
            return False
        if place + 2 >= len(self._tokens):
            return True
        follower = self._tokens[place + 2]
        is_empty = follower.text in EMPTY
        return follower.kind != "word" or (is_empty and not follower.is_a("article"))

    def _is_noun(self, place: int) -> bool:
        return self._tokens[place].is_noun

    def _text(self, place: int) -> str:
        return self._tokens[place].text if 0 <= place < len(self._tokens) else ""
