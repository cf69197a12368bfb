"""Rank the rows of an index for a query.

The words propose candidates by BM25, the vectors by exact cosine. Every candidate gets its exact
score on both sides, each side is divided by its best, and the weighted sum ranks: the convex
combination with theoretical minima of Bruch, Gai and Ingber (https://arxiv.org/abs/2210.11934).
A heading over headings loses a little for each level below its own children, because it says less
than they do; a standard with lettered parts loses nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from standards_mcp_encoders.spec import MINILM_NAME

from .columns import Selection
from .generation import Generation
from .lexical import Ranked
from .vectors import Floats, Nearness, Rows, towards_standards

Mode: TypeAlias = Literal["hybrid", "lexical", "dense"]

CANDIDATES = 100
_COMPARED = 10  # rows; the best by words and by meaning, to compare two readings of a text
_NO_ROWS = Ranked(np.zeros(0, np.int64), np.zeros(0, np.float32))
# Both were chosen on real queries, see docs/search.md. A penalty for every heading, even for the
# lowest ones, was better on one set of queries and worse on the other.
LEXICAL_WEIGHT = 0.45
HEADING_PENALTY = 0.1
# The nearest of 2,420 vectors resembles nothing in particular. A misspelt word that no word of the
# index resembles gets no result either; the answer then asks for other words.
LEAST_LIKENESS = 0.33
"""The cosine below which a text of unknown words alone matches nothing."""
WEAK_SCORE = 0.3
"""The score below which hits hardly ever fit, with the built-in model (docs/benchmarks.md)."""


class Match(NamedTuple):
    """A row that answers a query, and the other selected rows with the same text."""

    row: int
    score: float
    others: list[int]


class Ranker:
    """Ranks the selected rows of one generation for one query.

    Args:
        text: The query, to rank by words; None ranks by vectors only.
        vectors: The vectors of the query's passages, shape (passages, dimensions); None ranks by
            words only. The passage that is nearest to a row counts.
    """

    def __init__(
        self,
        generation: Generation,
        selection: Selection,
        *,
        text: str | None,
        vectors: npt.NDArray[np.float32] | None,
    ) -> None:
        self._generation = generation
        self._selection = selection
        self._query = None if text is None else generation.lexical.text_query(text)
        self._has_no_known_word = text is not None and self._query is None
        self._nearness: Nearness | None = None
        self._nearest = _NO_ROWS
        self._certainty = 1.0
        if vectors is not None and generation.vectors is not None:
            is_built_in = generation.manifest.model == MINILM_NAME
            turned = towards_standards(vectors) if is_built_in else vectors
            self._nearness = Nearness(generation.vectors, turned, selection.mask)
            self._nearest = self._nearness.best(CANDIDATES)
            # Scaling makes the best score 1 even if no row fits; the best cosine shows that. It is
            # that of the plain query: a turned one is less like any row, even where it fits.
            plain = Nearness(generation.vectors, vectors, selection.mask)
            best_score = plain.exact(self._nearest.rows).max(initial=0)
            self._certainty = float(np.clip(best_score, 0, 1))

    def fits_better_than(self, other: Ranker) -> bool:
        """Return True if this query has a better best cosine, or more rows best on both sides.

        If no record has a word of *other*, the result is True. Otherwise, without vectors, it is
        False.
        """
        if self._nearness is None or other._query is None:
            return other._query is None
        return self._certainty > other._certainty or self._agreement() > other._agreement()

    def phrase(self, id_: str) -> str:
        """Return the phrase of a record that is nearer to the query than the record, or ""."""
        if self._nearness is None:
            return ""
        place = self._nearness.nearest_phrase(bisect_left(self._generation.ids(), id_))
        return "" if place is None else self._generation.phrase(place)

    def _agreement(self) -> int:
        """Return the number of rows that are among the best by words and by meaning."""
        if self._query is None or self._nearness is None:
            return 0
        words = self._generation.lexical.search(self._query, self._selection.query, _COMPARED)
        return np.intersect1d(words.rows, self._nearest.rows[:_COMPARED]).size

    def best(self, top_k: int) -> list[Match]:
        """Return the *top_k* best texts, best first, or fewer if there are no more.

        The list is empty for a query that resembles no record and has no word of any record.
        """
        if self._has_no_known_word and self._certainty < LEAST_LIKENESS:
            return []
        depth = max(CANDIDATES, 2 * top_k)
        while True:
            rows, scores, exhausted = self._ranked(depth)
            groups = self._generation.groups[rows]
            _, first = np.unique(groups, return_index=True)
            if len(first) >= top_k or exhausted:
                leaders = np.sort(first)[:top_k]
                return self._matches(rows[leaders], scores[leaders])
            # Many candidates have the same text. A longer list may have further texts.
            depth *= 4

    def _ranked(self, depth: int) -> tuple[Rows, Floats, bool]:
        """Return the candidates, best first, their scores, and True if there are no more."""
        by_words = by_meaning = _NO_ROWS
        if self._query is not None:
            lexical = self._generation.lexical
            by_words = lexical.search(self._query, self._selection.query, depth)
        if self._nearness is not None:
            deep_enough = depth <= CANDIDATES
            by_meaning = self._nearest if deep_enough else self._nearness.best(depth)
        rows = np.union1d(by_words.rows, by_meaning.rows)
        scores = self._fused(
            self._word_scores(rows, by_words), self._meaning_scores(rows, by_meaning)
        )
        scores -= HEADING_PENALTY * np.maximum(self._generation.heights[rows] - 1, 0)
        order = np.lexsort((rows, -scores))
        exhausted = by_words.rows.size < depth and by_meaning.rows.size < depth
        return rows[order], scores[order], exhausted

    def _fused(self, words: Floats, meaning: Floats) -> Floats:
        if self._query is None:
            return scaled(meaning)
        if self._nearness is None:
            return scaled(words)
        fused = LEXICAL_WEIGHT * scaled(words) + (1 - LEXICAL_WEIGHT) * scaled(meaning)
        return fused.astype(np.float32)

    def _word_scores(self, rows: Rows, found: Ranked) -> Floats:
        if self._query is None:
            return np.zeros(rows.size, np.float32)
        return _completed(rows, found, partial(self._generation.lexical.scores, self._query))

    def _meaning_scores(self, rows: Rows, found: Ranked) -> Floats:
        if self._nearness is None:
            return np.zeros(rows.size, np.float32)
        return _completed(rows, found, self._nearness.exact)

    def _matches(self, rows: Rows, scores: Floats) -> list[Match]:
        groups = self._generation.groups
        have_these_texts = np.isin(groups, groups[rows])
        if self._selection.mask is not None:
            have_these_texts &= self._selection.mask
        by_group = defaultdict[int, list[int]](list)
        for row in np.flatnonzero(have_these_texts).tolist():
            by_group[int(groups[row])].append(row)
        scores = self._certainty * np.clip(scores, 0, 1)
        return [
            Match(row, score, [other for other in by_group[int(groups[row])] if other != row])
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]


def _completed(rows: Rows, found: Ranked, score: Callable[[Rows], Floats]) -> Floats:
    """Return the score of each of *rows* by words or by meaning, which *found* some of them."""
    scores = np.zeros(rows.size, np.float32)
    scores[np.searchsorted(rows, found.rows)] = found.scores
    # A row that only the other side found has a score on this side, too. With 0, it would rank
    # below rows that are worse on both sides.
    others = np.setdiff1d(rows, found.rows, assume_unique=True)
    scores[np.searchsorted(rows, others)] = score(others)
    return scores


def scaled(scores: Floats) -> Floats:
    """Return *scores* divided by the best of them, from 0 to 1."""
    # Divided by the maximum, not by the range, a score does not depend on the last candidate.
    best = scores.max(initial=0)
    return np.clip(scores / best, 0, 1) if best > 0 else np.zeros_like(scores)
