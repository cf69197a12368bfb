"""The report of a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from standards_mcp_career.answers import Breakdown, MatchReport, RequirementMatch
from standards_mcp_career.domain.records import Opportunity, Requirement

from .strategies import NAMES, Matcher, Options, Parts
from .words import WordIndex

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
    """Return what meets an opportunity's requirements, and what is missing."""
    candidates = matcher.candidates(opportunity)
    best = [_best(parts) for parts in matcher.parts(opportunity.requirements, candidates.mask)]
    matches = [
        _matched(requirement, each, words)
        for requirement, each in zip(opportunity.requirements, best, strict=True)
    ]
    breakdown = _breakdown(opportunity.requirements, best, options)
    is_semantic = options.strategy == "semantic"
    overall = breakdown["final_score"] if is_semantic else breakdown["lexical"]
    found = {each["contributing_atom_id"] for each in matches}
    return {
        "opportunity_id": opportunity.opportunity_id,
        "strategy": NAMES[options.strategy],
        "overall_score": overall,
        "requirement_matches": matches,
        "matched_atoms": sorted(each for each in found if each is not None),
        "missing_requirements": [
            each["requirement_text"] for each in matches if not each["matched"]
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
    return _Best(place, *(float(each[place]) for each in of_it))


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
        lexical = _mean([each.total for each in best], [1.0] * len(best))
        final = _LEXICAL_SHARE * lexical
        return {"lexical": lexical, "semantic": 0.0, "bonus": 0.0, "final_score": final}
    weights = [1.0 if each.required else _OPTIONAL_WEIGHT for each in requirements]
    return {
        "lexical": _mean([each.lexical for each in best], weights),
        "semantic": _mean([each.cosine for each in best], weights),
        "bonus": _mean([each.bonus for each in best], weights),
        "final_score": _mean([each.total for each in best], weights),
    }


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    products = (value * weight for value, weight in zip(values, weights, strict=True))
    return sum(products) / sum(weights) if weights else 0.0
