"""Matching strategies: select candidate atoms, score them, and build the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from .answers import MatchReport, RequirementMatch
from .atom_words import Mask, WordIndex
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
        self._is_semantic = options.strategy == "semantic"

    def report(self, opportunity: Opportunity) -> MatchReport:
        """Return the report: matched requirements with evidence, and missing ones."""
        requirements = opportunity.requirements
        lexical, nearest = self._candidates([part.text for part in requirements])
        best, matches = list[BestAtom](), list[RequirementMatch]()
        for requirement, atom in zip(
            requirements, self._best(requirements, lexical | nearest), strict=True
        ):
            atom_id, evidence = None, list[str]()
            if atom.place is not None:
                atom_id = self._words.atoms[atom.place].atom_id
                evidence = self._words.evidence(requirement.text, atom.place)
            best.append(atom)
            matches.append(
                {
                    "requirement_text": requirement.text,
                    "matched": atom_id is not None,
                    "best_score": atom.total,
                    "contributing_atom_id": atom_id,
                    "evidence_tokens": evidence,
                }
            )
        weights = [
            1.0 if part.required or not self._is_semantic else _OPTIONAL_WEIGHT
            for part in requirements
        ]
        overall = _mean([score.total for score in best], weights)
        atom_ids = {match["contributing_atom_id"] for match in matches}
        return {
            "opportunity_id": opportunity.opportunity_id,
            "strategy": NAMES[self._options.strategy],
            "overall_score": overall,
            "requirement_matches": matches,
            "matched_atoms": sorted(atom_id for atom_id in atom_ids if atom_id is not None),
            "missing_requirements": [
                match["requirement_text"] for match in matches if not match["matched"]
            ],
            "breakdown": {
                "lexical": _mean([score.lexical for score in best], weights),
                "semantic": _mean([score.cosine for score in best], weights),
                "bonus": _mean([score.bonus for score in best], weights),
                "final_score": overall if self._is_semantic else _LEXICAL_WEIGHT * overall,
            },
            "retrieval_stats": {
                "lexical_candidates": int(np.count_nonzero(lexical)),
                "embedding_candidates": int(np.count_nonzero(nearest)),
                "merged_candidates": int(np.count_nonzero(lexical | nearest)),
            },
        }

    def _candidates(self, texts: Sequence[str]) -> tuple[Mask, Mask]:
        """Return the candidates by words, and the candidates by vectors."""
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
            cosines = next(self._cosines([" ".join(texts)]))
            places = np.flatnonzero(self._allowed & np.isfinite(cosines))
            order = np.argsort(-cosines[places], kind="stable")
            nearest[places[order[: self._options.k_emb]]] = True
        return lexical, nearest

    def _best(self, requirements: Sequence[Requirement], mask: Mask) -> Iterator[BestAtom]:
        """Yield the best atom of a mask for each requirement.

        A generator, because the scores for all requirements may not fit into memory.
        """
        cosines = self._cosines([part.text for part in requirements])
        for requirement in requirements:
            lexical = self._words.lexical(requirement.text, mask)
            cosine, bonus, total = np.zeros_like(lexical), np.zeros_like(lexical), lexical
            if self._is_semantic:
                cosine, wanted = np.maximum(next(cosines), 0.0), set(requirement.tags)
                for place in np.flatnonzero(lexical).tolist() if wanted else ():
                    tags = wanted.intersection(self._words.atoms[place].tags)
                    bonus[place] = len(tags) / len(wanted)
                total = _LEXICAL_WEIGHT * lexical + _COSINE_WEIGHT * cosine + _BONUS_WEIGHT * bonus
                total = np.where(lexical > 0, total, 0.0)
            if not total.any():
                yield BestAtom(None)
                continue
            # `argmax` returns the first of equal scores, which has the smallest id.
            best = int(np.argmax(total))
            yield BestAtom(best, *(float(part[best]) for part in (total, lexical, cosine, bonus)))

    def _cosines(self, texts: Sequence[str]) -> Iterator[Scores]:
        """Yield the cosines of each text to all atoms, -inf for an atom without a vector."""
        unknown = np.full(len(self._allowed), -np.inf)
        if self._embedder is None:
            yield from repeat(unknown, len(texts))
            return
        vectors = self._embedder.embed(texts)
        table = self._vectors.table("atom", vectors.shape[1])
        places = self._words.places(table.ids)
        for start in range(0, len(texts), _BLOCK_SIZE):
            near = table.cosines(vectors[start : start + _BLOCK_SIZE])
            cosines = np.tile(unknown, (len(near), 1))
            cosines[:, places[places >= 0]] = near[:, places >= 0]
            yield from cosines


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    products = (value * weight for value, weight in zip(values, weights, strict=True))
    return sum(products) / sum(weights) if weights else 0.0
