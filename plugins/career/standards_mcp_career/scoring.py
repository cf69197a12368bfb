"""Matching strategies: select candidate atoms, score them, and build the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from .atom_words import Mask, WordIndex, places_of
from .records import Opportunity, Requirement
from .schemas import Breakdown, MatchReport, RequirementMatch
from .settings import Strategy, StrategyName
from .vectors import Embedder, Scores, VectorStore

NAMES: Final[dict[Strategy, StrategyName]] = {
    "lexical": "deterministic_lexical_v0.1",
    "hybrid": "hybrid_lexical_embedding_v0.2",
    "semantic": "hybrid_semantic_v0.3",
}
_LEXICAL, _COSINE, _BONUS = 0.55, 0.35, 0.10
_BLOCK: Final = 32
"""Requirements in one matrix product, which is faster than single rows; it bounds the memory."""


def named(strategy: Strategy | StrategyName) -> Strategy:
    """Return the short name of a strategy, from either of its names."""
    return next(short for short, name in NAMES.items() if strategy in (short, name))


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a match.

    Attributes:
        k_lex: Number of candidates by words.
        k_emb: Number of candidates by vectors.
    """

    strategy: Strategy
    k_lex: int
    k_emb: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate atoms, with their number by stage."""

    mask: Mask
    lexical: int
    embedding: int

    @property
    def merged(self) -> int:
        """Number of candidates of all stages."""
        return int(np.count_nonzero(self.mask))


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the score of one requirement with each atom: lexical, cosine and bonus.

    Attributes:
        total: The score by the strategy.
    """

    total: Scores
    lexical: Scores
    cosine: Scores
    bonus: Scores


class Matcher:
    """Apply a strategy to the atoms of one call.

    Args:
        allowed: The atoms that exist for the call.
        embedder: None without vectors.
    """

    def __init__(
        self,
        words: WordIndex,
        allowed: Mask,
        options: Options,
        vectors: VectorStore,
        embedder: Embedder | None,
    ) -> None:
        self._words, self._allowed, self._options = words, allowed, options
        self._vectors, self._embedder = vectors, embedder

    def candidates(self, opportunity: Opportunity) -> Candidates:
        """Return the candidate atoms for an opportunity."""
        asked = {
            word
            for requirement in opportunity.requirements
            for word in self._words.asked(requirement.text)
        }
        if self._options.strategy == "lexical" or not asked:
            return Candidates(self._allowed, int(np.count_nonzero(self._allowed)), 0)
        lexical = self._first_by_words(asked)
        nearest = self._nearest(
            " ".join(requirement.text for requirement in opportunity.requirements)
        )
        return Candidates(
            lexical | nearest, int(np.count_nonzero(lexical)), int(np.count_nonzero(nearest))
        )

    def _first_by_words(self, asked: set[str]) -> Mask:
        shared = self._words.shared(asked)
        places = np.flatnonzero(self._allowed)
        # Stable: of equal ones the smaller id comes first.
        best = places[np.argsort(-shared[places], kind="stable")[: self._options.k_lex]]
        mask = np.zeros_like(self._allowed)
        mask[best] = True
        return mask

    def _nearest(self, text: str) -> Mask:
        mask = np.zeros_like(self._allowed)
        if self._embedder is None or not self._options.k_emb:
            return mask
        table = self._vectors.table("atom")
        places = self._words.places(table.ids)
        near = table.cosines(self._embedder.embed([text]))
        known_places = np.flatnonzero(places >= 0)
        known_places = known_places[self._allowed[places[known_places]]]
        # Stable: of equal ones the smaller id comes first.
        ordered = np.argsort(-near[0, known_places], kind="stable")
        mask[places[known_places[ordered[: self._options.k_emb]]]] = True
        return mask

    def parts(self, requirements: Sequence[Requirement], mask: Mask) -> Iterator[Parts]:
        """Yield the scores of each requirement with all atoms; those outside of *mask* have 0.

        A generator, because the scores of all requirements together may not fit into memory.
        """
        if self._options.strategy != "semantic":
            for requirement in requirements:
                yield self._of(requirement, mask, None)
            return
        cosines = self._cosines([requirement.text for requirement in requirements])
        for requirement, row in zip(requirements, cosines, strict=True):
            yield self._of(requirement, mask, row * mask)

    def _cosines(self, texts: Sequence[str]) -> Iterator[Scores]:
        """Yield the cosines of each text to all atoms, 0 in place of negative ones."""
        table = self._vectors.table("atom")
        places = self._words.places(table.ids)
        known_places = places >= 0
        vectors = self._embedder.embed(texts) if self._embedder and texts else None
        for start in range(0, len(texts), _BLOCK):
            cosines = np.zeros((len(texts[start : start + _BLOCK]), len(self._allowed)))
            if vectors is not None:
                near = table.cosines(vectors[start : start + _BLOCK])
                cosines[:, places[known_places]] = np.maximum(near[:, known_places], 0.0)
            yield from cosines

    def _of(self, requirement: Requirement, mask: Mask, cosines: Scores | None) -> Parts:
        lexical = self._words.lexical(requirement.text, mask)
        if cosines is None:
            none = np.zeros_like(lexical)
            return Parts(lexical, lexical, none, none)
        bonus = np.zeros_like(lexical)
        if requirement.tags:
            wanted = set(requirement.tags)
            for place in places_of(lexical > 0):
                has = wanted.intersection(self._words.atoms[place].tags)
                bonus[place] = len(has) / len(wanted)
        total = _LEXICAL * lexical + _COSINE * cosines + _BONUS * bonus
        return Parts(np.where(lexical > 0, total, 0.0), lexical, cosines, bonus)


_LEXICAL_SHARE: Final = 0.55
_OPTIONAL_WEIGHT: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Best:
    """The best atom for a requirement: its place, or None, and the parts of its score."""

    place: int | None
    total: float = 0.0
    lexical: float = 0.0
    cosine: float = 0.0
    bonus: float = 0.0


def match(
    opportunity: Opportunity, words: WordIndex, matcher: Matcher, options: Options
) -> MatchReport:
    """Return the report: matched requirements with evidence, and missing ones."""
    candidates = matcher.candidates(opportunity)
    best = [_best(parts) for parts in matcher.parts(opportunity.requirements, candidates.mask)]
    matches = [
        _matched(requirement, candidate, words)
        for requirement, candidate in zip(opportunity.requirements, best, strict=True)
    ]
    breakdown = _breakdown(opportunity.requirements, best, options)
    is_semantic = options.strategy == "semantic"
    overall = breakdown["final_score"] if is_semantic else breakdown["lexical"]
    atom_ids = {matched["contributing_atom_id"] for matched in matches}
    return {
        "opportunity_id": opportunity.opportunity_id,
        "strategy": NAMES[options.strategy],
        "overall_score": overall,
        "requirement_matches": matches,
        "matched_atoms": sorted(atom_id for atom_id in atom_ids if atom_id is not None),
        "missing_requirements": [
            matched["requirement_text"] for matched in matches if not matched["matched"]
        ],
        "breakdown": breakdown,
        "retrieval_stats": {
            "lexical_candidates": candidates.lexical,
            "embedding_candidates": candidates.embedding,
            "merged_candidates": candidates.merged,
        },
    }


def _best(parts: Parts) -> _Best:
    if not len(parts.total):
        return _Best(None)
    place = int(np.argmax(parts.total))  # the first of equal ones, which has the smallest id
    if parts.total[place] <= 0:
        return _Best(None)
    of_it = (parts.total, parts.lexical, parts.cosine, parts.bonus)
    return _Best(place, *(float(values[place]) for values in of_it))


def _matched(requirement: Requirement, best: _Best, words: WordIndex) -> RequirementMatch:
    atom = None if best.place is None else words.atoms[best.place]
    evidence = [] if best.place is None else words.evidence(requirement.text, best.place)
    return {
        "requirement_text": requirement.text,
        "matched": atom is not None,
        "best_score": best.total,
        "contributing_atom_id": atom.atom_id if atom else None,
        "evidence_tokens": evidence,
    }


def _breakdown(
    requirements: Sequence[Requirement], best: Sequence[_Best], options: Options
) -> Breakdown:
    if options.strategy != "semantic":
        lexical = _mean([part.total for part in best], [1.0] * len(best))
        final = _LEXICAL_SHARE * lexical
        return {"lexical": lexical, "semantic": 0.0, "bonus": 0.0, "final_score": final}
    weights = [1.0 if part.required else _OPTIONAL_WEIGHT for part in requirements]
    return {
        "lexical": _mean([part.lexical for part in best], weights),
        "semantic": _mean([part.cosine for part in best], weights),
        "bonus": _mean([part.bonus for part in best], weights),
        "final_score": _mean([part.total for part in best], weights),
    }


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    products = (value * weight for value, weight in zip(values, weights, strict=True))
    return sum(products) / sum(weights) if weights else 0.0
