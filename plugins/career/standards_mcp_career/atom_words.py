"""Inverted indexes of the words of atoms, one for each setting of ``tokens``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from standards_mcp import NotFoundError

from .language.evidence import MIN_SHARE, AtomText, judge, parse_atom, parse_requirement
from .primitives import tokens
from .records import Atom, Tokens
from .vectors import Scores

Mask: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = NDArray[np.int32]


# In memory, because SQLite's full-text search splits texts into other words. Indexing 10,000 atoms
# takes 0.3 s.
class WordIndex:
    """Find the verified atoms that share words with a text.

    Words are runs of ASCII letters and digits. Every shared word is evidence.

    Args:
        atoms: All atoms; only verified ones are indexed.
    """

    def __init__(self, atoms: Iterable[Atom]) -> None:
        ordered = sorted(atoms, key=lambda atom: atom.atom_id)
        self._ids = frozenset(atom.atom_id for atom in ordered)
        self.atoms: Sequence[Atom] = [atom for atom in ordered if atom.verified]
        self._position = {atom.atom_id: place for place, atom in enumerate(self.atoms)}
        postings: dict[str, list[int]] = {}
        for place, atom in enumerate(self.atoms):
            for word in self._index_words(atom):
                postings.setdefault(word, []).append(place)
        self._postings = {word: np.array(places) for word, places in postings.items()}

    def _index_words(self, atom: Atom) -> Collection[str]:
        """Return the index words of an atom."""
        return words_of(atom)

    def requirement_words(self, text: str) -> set[str]:
        """Return the words to look up for a requirement."""
        return set(tokens(text))

    def lexical(self, text: str, mask: Mask) -> Scores:
        """Return the lexical score of each atom for a requirement, 0 without a match."""
        words = self.requirement_words(text)
        return np.where(mask, self.shared_counts(words) / max(1, len(words)), 0.0)

    def evidence(self, text: str, place: int) -> list[str]:
        """Return the words of a requirement that the atom at a place has, sorted."""
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

    def shared_counts(self, words: Collection[str]) -> Counts:
        """Return for each atom how many of these words it has."""
        counts = np.zeros(len(self.atoms), dtype=np.int32)
        for word in words:
            if (places := self._postings.get(word)) is not None:
                counts[places] += 1
        return counts


class MeaningfulWordIndex(WordIndex):
    """Index of meaningful words of any script. An atom must have a share of them; see `judge`."""

    @override
    def __init__(self, atoms: Iterable[Atom]) -> None:
        self._texts: list[AtomText] = []  # in the order of the atoms; filled by `_index_words`
        super().__init__(atoms)

    @override
    def _index_words(self, atom: Atom) -> Collection[str]:
        text_of_atom = parse_atom(atom.claim, atom.title, atom.tags)
        self._texts.append(text_of_atom)
        return text_of_atom.keys()

    @override
    def requirement_words(self, text: str) -> set[str]:
        return {key for slot in parse_requirement(text) for key in slot.keys}

    @override
    def lexical(self, text: str, mask: Mask) -> Scores:
        slots = parse_requirement(text)
        counts = sum((self.shared_counts(slot.keys) > 0 for slot in slots), np.zeros(len(mask)))
        scores = np.zeros(len(mask))
        if slots:
            for place in places_of(mask & (counts >= MIN_SHARE * len(slots))):
                scores[place] = judge(slots, self._texts[place]).share
        return scores

    @override
    def evidence(self, text: str, place: int) -> list[str]:
        return judge(parse_requirement(text), self._texts[place]).words


def word_index(atoms: Iterable[Atom], rule: Tokens) -> WordIndex:
    """Return the index for a value of the setting ``tokens``."""
    # By the original rule, the word "in" would be evidence for "PhD in education".
    return WordIndex(atoms) if rule == "original" else MeaningfulWordIndex(atoms)


def words_of(atom: Atom) -> frozenset[str]:
    """Return the words of an atom by the original rule."""
    return frozenset([*tokens(atom.claim), *tokens(atom.title), *atom.tags])


def places_of(mask: Mask) -> list[int]:
    """Return the places at which a mask is true."""
    places: list[int] = np.flatnonzero(mask).tolist()
    return places
