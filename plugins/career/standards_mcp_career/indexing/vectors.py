"""Vectors in memory, and how near they are to others."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from standards_mcp_encoders import Vectors

Key: TypeAlias = tuple[str, str]
"""The kind and the id of what a vector is of."""
Scores: TypeAlias = NDArray[np.float64]
_DECIMALS: Final = 9
"""Cosines that differ by less are equal, so that they do not depend on the rows beside them."""


class Kept(NamedTuple):
    """A vector.

    Attributes:
        source_hash: The hash of the text that it is of.
    """

    source_hash: str
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Table:
    """The vectors of one kind.

    Attributes:
        ids: Sorted.
        parts: By their dimension, the places in *ids* and the vectors, of length 1 or 0.
    """

    ids: Sequence[str]
    parts: Mapping[int, tuple[NDArray[np.intp], Scores]]

    def cosines(self, vectors: Vectors) -> Scores:
        """Return a row for each vector: how near it is to each of *ids*.

        A vector of another dimension, and a zero vector, has 0.
        """
        scores = np.zeros((len(vectors), len(self.ids)))
        if (part := self.parts.get(vectors.shape[1])) is not None:
            places, rows = part
            scores[:, places] = (_of_length_1(vectors) @ rows.T).round(_DECIMALS)
        return scores


class VectorStore(Protocol):
    """Vectors by their keys. Threads may use it at one time.

    Each method raises `ApiError` where what keeps the vectors fails.
    """

    def put(self, rows: Mapping[Key, Kept]) -> None:
        """Keep vectors of one dimension, in place of those with the same keys."""
        ...

    def remove(self, keys: Iterable[Key]) -> None:
        """Forget vectors."""
        ...

    def settle(self) -> None:
        """Tidy up after a build."""
        ...

    def hashes(self) -> Mapping[Key, str]:
        """Return of all vectors the hash of the text that each is of."""
        ...

    def table(self, kind: str) -> Table:
        """Return the vectors of a kind as they are now."""
        ...


class MemoryVectors:
    """Vectors that end with the process."""

    def __init__(self) -> None:
        self._rows: dict[Key, Kept] = {}
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    def put(self, rows: Mapping[Key, Kept]) -> None:
        """Keep vectors. See `VectorStore`."""
        with self._lock:
            self._rows = {**self._rows, **rows}
            self._tables.clear()

    def replace(self, rows: Mapping[Key, Kept]) -> None:
        """Keep these vectors and no others."""
        with self._lock:
            self._rows = dict(rows)
            self._tables.clear()

    def settle(self) -> None:
        """Do nothing: memory needs no tidying."""

    def remove(self, keys: Iterable[Key]) -> None:
        """Forget vectors."""
        gone = set(keys)
        with self._lock:
            self._rows = {key: row for key, row in self._rows.items() if key not in gone}
            self._tables.clear()

    def hashes(self) -> Mapping[Key, str]:
        """Return of all vectors the hash of the text that each is of."""
        return {key: kept.source_hash for key, kept in self._rows.items()}

    def table(self, kind: str) -> Table:
        """Return the vectors of a kind as they are now."""
        with self._lock:
            if kind not in self._tables:
                self._tables[kind] = _table(
                    {key[1]: kept.vector for key, kept in self._rows.items() if key[0] == kind}
                )
            return self._tables[kind]


def _table(rows: Mapping[str, Vectors]) -> Table:
    ids = sorted(rows)
    places: dict[int, list[int]] = {}
    for place, identifier in enumerate(ids):
        places.setdefault(len(rows[identifier]), []).append(place)
    return Table(
        ids,
        {
            dimension: (np.array(found), _of_length_1(np.stack([rows[ids[at]] for at in found])))
            for dimension, found in places.items()
        },
    )


def _of_length_1(vectors: Vectors) -> Scores:
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Scores = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled
