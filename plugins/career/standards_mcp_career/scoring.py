"""Matching strategies: select candidate atoms, score them, and build the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from .answers import Breakdown, MatchReport, RequirementMatch
from .atom_words import Mask, WordIndex, places_of
from .records import Opportunity, Requirement
from .settings import Strategy, StrategyName
from .vectors import Embedder, MemoryVectors, Scores

NAMES: Final[dict[Strategy, StrategyName]] = {
    "lexical": "deterministic_lexical_v0.1",
    "hybrid": "hybrid_lexical_embedding_v0.2",
    "semantic": "hybrid_semantic_v0.3",
}
_LEXICAL_WEIGHT, _COSINE_WEIGHT, _BONUS_WEIGHT = 0.55, 0.35, 0.10
_OPTIONAL_WEIGHT: Final = 0.5
_BLOCK_SIZE: Final = 32
"""Requirements for each matrix product: faster than one by one, and with bounded memory."""


def short_name(strategy: Strategy | StrategyName) -> Strategy:
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


class BestAtom(NamedTuple):
    """The best atom for a requirement: its place in the index, or None, and its scores."""

    place: int | None
    total: float = 0.0
    lexical: float = 0.0
    cosine: float = 0.0
    bonus: float = 0.0


class Matcher:
    """Apply a strategy to the atoms of one call.

    Args:
        allowed: The mask of the atoms that the call may use.
        embedder: None without vectors.
    """

    def __init__(
        self,
        words: WordIndex,
        allowed: Mask,
        options: Options,
        vectors: MemoryVectors,
        embedder: Embedder | None,
    ) -> None:
        self._words, self._allowed, self._options = words, allowed, options
        self._vectors, self._embedder = vectors, embedder

    def report(self, opportunity: Opportunity) -> MatchReport:
        """Return the report: matched requirements with evidence, and missing ones."""
        requirements = opportunity.requirements
        lexical, nearest = self._candidates(opportunity)
        candidates = lexical | nearest
        best = list(self._best(requirements, candidates))
        matches = list(map(self._match, requirements, best))
        breakdown = self._breakdown(requirements, best)
        is_semantic = self._options.strategy == "semantic"
        atom_ids = {match["contributing_atom_id"] for match in matches}
        return {
            "opportunity_id": opportunity.opportunity_id,
            "strategy": NAMES[self._options.strategy],
            "overall_score": breakdown["final_score" if is_semantic else "lexical"],
            "requirement_matches": matches,
            "matched_atoms": sorted(atom_id for atom_id in atom_ids if atom_id is not None),
            "missing_requirements": [
                match["requirement_text"] for match in matches if not match["matched"]
            ],
            "breakdown": breakdown,
            "retrieval_stats": {
                "lexical_candidates": int(np.count_nonzero(lexical)),
                "embedding_candidates": int(np.count_nonzero(nearest)),
                "merged_candidates": int(np.count_nonzero(candidates)),
            },
        }

    def _candidates(self, opportunity: Opportunity) -> tuple[Mask, Mask]:
        """Return the candidates by words, and the candidates by vectors."""
        texts = [requirement.text for requirement in opportunity.requirements]
        asked = {word for text in texts for word in self._words.requirement_words(text)}
        nearest = np.zeros_like(self._allowed)
        if self._options.strategy == "lexical" or not asked:
            return self._allowed, nearest
        places = np.flatnonzero(self._allowed)
        # Both sorts are stable: if scores are equal, the smaller id comes first.
        order = np.argsort(-self._words.shared_counts(asked)[places], kind="stable")
        lexical = np.zeros_like(self._allowed)
        lexical[places[order[: self._options.k_lex]]] = True
        if self._embedder is not None and self._options.k_emb:
            table = self._vectors.table("atom")
            places = self._words.places(table.ids)
            rows = np.flatnonzero(places >= 0)
            rows = rows[self._allowed[places[rows]]]
            cosines = table.cosines(self._embedder.embed([" ".join(texts)]))[0, rows]
            order = np.argsort(-cosines, kind="stable")
            nearest[places[rows[order[: self._options.k_emb]]]] = True
        return lexical, nearest

    def _best(self, requirements: Sequence[Requirement], mask: Mask) -> Iterator[BestAtom]:
        """Yield the best atom of a mask for each requirement.

        A generator, because the scores for all requirements may not fit into memory.
        """
        is_semantic = self._options.strategy == "semantic"
        texts = [requirement.text for requirement in requirements] if is_semantic else []
        cosines = self._cosines(texts)
        for requirement in requirements:
            lexical = self._words.lexical(requirement.text, mask)
            if is_semantic:
                cosine = next(cosines)
                bonus = self._bonus(requirement, lexical)
                total = _LEXICAL_WEIGHT * lexical + _COSINE_WEIGHT * cosine + _BONUS_WEIGHT * bonus
                total = np.where(lexical > 0, total, 0.0)
            else:
                cosine, bonus, total = np.zeros_like(lexical), np.zeros_like(lexical), lexical
            # `argmax` returns the first of equal scores, which has the smallest id.
            place = int(np.argmax(total)) if len(total) else 0
            parts = [float(part[place]) for part in (total, lexical, cosine, bonus) if len(part)]
            yield BestAtom(place, *parts) if parts and parts[0] > 0 else BestAtom(None)

    def _cosines(self, texts: Sequence[str]) -> Iterator[Scores]:
        """Yield the cosines of each text to all atoms, with 0 for negative cosines."""
        if not texts:
            return
        table = self._vectors.table("atom")
        places = self._words.places(table.ids)
        indexed = places >= 0
        vectors = self._embedder.embed(texts) if self._embedder else None
        for start in range(0, len(texts), _BLOCK_SIZE):
            cosines = np.zeros((len(texts[start : start + _BLOCK_SIZE]), len(self._allowed)))
            if vectors is not None:
                near = table.cosines(vectors[start : start + _BLOCK_SIZE])
                cosines[:, places[indexed]] = np.maximum(near[:, indexed], 0.0)
            yield from cosines

    def _bonus(self, requirement: Requirement, lexical: Scores) -> Scores:
        """Return the share of a requirement's tags that each atom with shared words has."""
        bonus, wanted = np.zeros_like(lexical), set(requirement.tags)
        for place in places_of(lexical > 0) if wanted else ():
            bonus[place] = len(wanted.intersection(self._words.atoms[place].tags)) / len(wanted)
        return bonus

    def _match(self, requirement: Requirement, best: BestAtom) -> RequirementMatch:
        atom_id, evidence = None, list[str]()
        if best.place is not None:
            atom_id = self._words.atoms[best.place].atom_id
            evidence = self._words.evidence(requirement.text, best.place)
        return {
            "requirement_text": requirement.text,
            "matched": atom_id is not None,
            "best_score": best.total,
            "contributing_atom_id": atom_id,
            "evidence_tokens": evidence,
        }

    def _breakdown(
        self, requirements: Sequence[Requirement], best: Sequence[BestAtom]
    ) -> Breakdown:
        if self._options.strategy != "semantic":
            lexical = _mean([score.total for score in best], [1.0] * len(best))
            final = _LEXICAL_WEIGHT * lexical
            return {"lexical": lexical, "semantic": 0.0, "bonus": 0.0, "final_score": final}
        weights = [1.0 if part.required else _OPTIONAL_WEIGHT for part in requirements]
        return {
            "lexical": _mean([score.lexical for score in best], weights),
            "semantic": _mean([score.cosine for score in best], weights),
            "bonus": _mean([score.bonus for score in best], weights),
            "final_score": _mean([score.total for score in best], weights),
        }


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    products = (value * weight for value, weight in zip(values, weights, strict=True))
    return sum(products) / sum(weights) if weights else 0.0
