"""Standards as a comparison reads them: plain text, weighted words, and their likeness."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.records import ancestors_text, comparable, depth_first
from standards_mcp_catalog.vocabulary.names import POSTAL_CODES
from standards_mcp_catalog.vocabulary.notation import canonical_key

_TAG: Final = re.compile(r"<[^<>]{1,200}>")
_WORD: Final = re.compile(r"\w+")
_STEM: Final = 6
"""Letters of a word that count, so that ``compare`` and ``comparing`` are one word."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One standard or heading of an edition.

    Attributes:
        text: Its own text without HTML, in one line.
        folded: The text without case and punctuation: equal for texts with the same words.
        path: The folded texts of the headings above it.
        code: The key of its code, without the postal code of a state before it.
        words: The beginnings of its words.
    """

    record: StandardRecord
    text: str
    folded: str
    path: str
    code: str
    levels: frozenset[str]
    words: frozenset[str]

    @property
    def id(self) -> str:
        """The id of the record."""
        return self.record.id

    def is_near(self, other: Statement) -> bool:
        """Return True if both may be for the same grade."""
        return not self.levels or not other.levels or not self.levels.isdisjoint(other.levels)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Statements of both editions that belong together: one on a side at least.

    Attributes:
        basis: The reason, for people.
        score: Likeness from 0 to 1; 1 if it was not computed.
    """

    left: tuple[Statement, ...]
    right: tuple[Statement, ...]
    basis: str
    score: float = 1.0


def statement_of(record: StandardRecord) -> Statement:
    """Return a record as a statement."""
    text = plain(record.description)
    folded = comparable(text)
    return Statement(
        record=record,
        text=text,
        folded=folded,
        path=comparable(plain(ancestors_text(record.to_dict()))),
        code=_code(record),
        levels=frozenset(record.education_levels),
        words=frozenset(word[:_STEM] for word in folded.split()),
    )


def plain(text: str) -> str:
    """Return a text without HTML, in one line."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _code(record: StandardRecord) -> str:
    key = canonical_key(record.statement_notation or "")
    state, _, rest = key.partition(".")
    return rest if state in POSTAL_CODES and rest else key


class Weights:
    """The weights of words: a word of many statements says little.

    Args:
        statements: All statements of both editions.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        counts = Counter(word for each in statements for word in each.words)
        self._weights: Mapping[str, float] = {
            word: math.log1p(len(statements) / count) for word, count in counts.items()
        }

    def of(self, words: Iterable[str]) -> float:
        """Return the total weight of words."""
        return sum(map(self._weights.__getitem__, words))

    def likeness(self, one: frozenset[str], other: frozenset[str]) -> float:
        """Return the share of weight that two sets of words have in common, from 0 to 1."""
        total = self.of(one) + self.of(other)
        return 2 * self.of(one & other) / total if total else 0.0


def in_tree_order(records: Sequence[StandardRecord]) -> list[StandardRecord]:
    """Return records by grade, each heading followed by its children."""
    by_id = {record.id: record for record in records}
    roots = [record for record in records if record.parent_id not in by_id]
    roots.sort(key=lambda record: (record.education_levels, record.statement_notation or ""))
    return depth_first([*roots, *records], by_id)  # all records, in case no parent lists one
