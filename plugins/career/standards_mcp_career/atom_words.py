"""Inverted index of the words of atoms, by either setting of ``tokens``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from standards_mcp import NotFoundError

from .language.evidence import MIN_SHARE, AtomText, Slot, judge, parse_atom, parse_requirement
from .primitives import tokens
from .records import Atom, Tokens
from .vectors import Scores

Mask: TypeAlias = NDArray[np.bool_]


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
