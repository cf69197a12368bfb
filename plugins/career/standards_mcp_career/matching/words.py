"""An inverted index of the words of atoms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from standards_mcp_career.domain.records import Atom
from standards_mcp_career.domain.text import tokens

Mask: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = NDArray[np.int32]


class WordIndex:
    """Finds the verified atoms that share words with a text.

    Args:
        atoms: All atoms; those that are not verified are never found.
    """

    def __init__(self, atoms: Iterable[Atom]) -> None:
        ordered = sorted(atoms, key=lambda atom: atom.atom_id)
        self.known = frozenset(atom.atom_id for atom in ordered)
        self.atoms: Sequence[Atom] = [atom for atom in ordered if atom.verified]
        self._position = {atom.atom_id: place for place, atom in enumerate(self.atoms)}
        postings: dict[str, list[int]] = {}
        for place, atom in enumerate(self.atoms):
            for word in words_of(atom):
                postings.setdefault(word, []).append(place)
        self._postings = {word: np.array(found) for word, found in postings.items()}

    def all(self) -> Mask:
        """Return a mask of all atoms, in the order of their ids."""
        return np.ones(len(self.atoms), dtype=np.bool_)

    def places(self, atom_ids: Iterable[str]) -> NDArray[np.intp]:
        """Return the place of each atom; -1 where it is not verified or not there."""
        return np.array([self._position.get(each, -1) for each in atom_ids], dtype=np.intp)

    def mask(self, atom_ids: Iterable[str]) -> Mask:
        """Return a mask of some of them."""
        chosen, places = np.zeros(len(self.atoms), dtype=np.bool_), self.places(atom_ids)
        chosen[places[places >= 0]] = True
        return chosen

    def shared(self, words: Collection[str]) -> Counts:
        """Return of each atom how many of these words it has."""
        counts = np.zeros(len(self.atoms), dtype=np.int32)
        for word in words:
            if (found := self._postings.get(word)) is not None:
                counts[found] += 1
        return counts


def words_of(atom: Atom) -> frozenset[str]:
    """Return the words of an atom."""
    return frozenset([*tokens(atom.claim), *tokens(atom.title), *atom.tags])


def places_of(mask: Mask) -> list[int]:
    """Return the places at which a mask is true."""
    found: list[int] = np.flatnonzero(mask).tolist()
    return found
