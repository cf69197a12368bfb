"""Matching strategies: index the words of atoms, select and score candidates, build the report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from standards_mcp import NotFoundError

from .answers import MatchReport, RequirementMatch
from .language.evidence import MIN_SHARE, AtomText, Slot, judge, parse_atom, parse_requirement
from .primitives import tokens
from .records import Atom, Opportunity, Requirement, Tokens
from .settings import Strategy, StrategyName
from .vectors import Embedder, MemoryVectors, Scores

Mask: TypeAlias = NDArray[np.bool_]
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


# In memory, because SQLite's full-text search splits texts into other words. Indexing 10,000 atoms
# takes 0.3 s.
class WordIndex:
    """Find the verified atoms that share words with a text.

    Args:
        atoms: All atoms; only verified ones are indexed.
        rule: With "meaningful", an atom must have a share of a requirement's meaningful words of
            any script; see `judge`. With "original", words are runs of ASCII letters and digits,
            and every shared word is evidence, such as "in" for "PhD in education".
    """

    def __init__(self, atoms: Iterable[Atom], rule: Tokens) -> None:
        ordered = sorted(atoms, key=lambda atom: atom.atom_id)
        self._rule, self._ids = rule, frozenset(atom.atom_id for atom in ordered)
        self.atoms: Sequence[Atom] = [atom for atom in ordered if atom.verified]
        self._position = {atom.atom_id: place for place, atom in enumerate(self.atoms)}
        self._texts = list[AtomText]()  # in the order of the atoms; empty by the original rule
        postings: dict[str, list[int]] = {}
        for place, atom in enumerate(self.atoms):
            words: Collection[str] = words_of(atom)
            if rule == "meaningful":
                self._texts.append(parse_atom(atom.claim, atom.title, atom.tags))
                words = self._texts[place].keys()
            for word in words:
                postings.setdefault(word, []).append(place)
        self._postings = {word: np.array(places) for word, places in postings.items()}

    def _slots(self, text: str) -> Sequence[Slot]:
        if self._rule == "meaningful":
            return parse_requirement(text)
        return [Slot({word: word}) for word in sorted(set(tokens(text)))]

    def requirement_words(self, text: str) -> set[str]:
        """Return the words to look up for a requirement."""
        return {key for slot in self._slots(text) for key in slot.keys}

    def lexical(self, text: str, mask: Mask) -> Scores:
        """Return the lexical score of each atom for a requirement, 0 without a match."""
        slots, counts = self._slots(text), np.zeros(len(mask))
        for slot in slots:
            counts += self.shared_counts(slot.keys) > 0
        shares: Scores = np.where(mask, counts / max(1, len(slots)), 0.0)
        if self._rule == "meaningful":
            shares[shares < MIN_SHARE] = 0.0  # `judge` finds no more than these words
            for place in np.flatnonzero(shares):
                shares[place] = judge(slots, self._texts[place]).share
        return shares

    def evidence(self, text: str, place: int) -> list[str]:
        """Return the words of a requirement that the atom at a place has, sorted."""
        if self._rule == "meaningful":
            return judge(parse_requirement(text), self._texts[place]).words
        return sorted(words_of(self.atoms[place]).intersection(tokens(text)))

    def mask(self, atom_ids: Collection[str] | None = None) -> Mask:
        """Return a mask of the atoms with these ids, or of all.

        Raises:
            NotFoundError: An atom does not exist.
        """
        if atom_ids is None:
            return np.ones(len(self.atoms), dtype=np.bool_)
        for atom_id in atom_ids:
            if atom_id not in self._ids:
                raise NotFoundError(f"Atom not found: {atom_id}")
        chosen, places = np.zeros(len(self.atoms), dtype=np.bool_), self.places(atom_ids)
        chosen[places[places >= 0]] = True
        return chosen

    def places(self, atom_ids: Iterable[str]) -> NDArray[np.intp]:
        """Return the position of each atom, -1 for an unverified or unknown one."""
        return np.array([self._position.get(atom_id, -1) for atom_id in atom_ids], dtype=np.intp)

    def shared_counts(self, words: Collection[str]) -> NDArray[np.int32]:
        """Return for each atom how many of these words it has."""
        counts = np.zeros(len(self.atoms), dtype=np.int32)
        for word in words:
            if (places := self._postings.get(word)) is not None:
                counts[places] += 1
        return counts


def words_of(atom: Atom) -> frozenset[str]:
    """Return the words of an atom by the original rule."""
    return frozenset([*tokens(atom.claim), *tokens(atom.title), *atom.tags])


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
