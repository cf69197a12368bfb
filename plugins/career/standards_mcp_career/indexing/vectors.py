"""Vectors in memory, and the nearest of them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np

from standards_mcp.catalog.embedding import Vectors

Key: TypeAlias = tuple[str, str]
"""The kind and the id of what a vector is of."""
_DECIMALS: Final = 9
"""Cosines that differ by less are equal."""


class VectorStore:
    """Vectors by their keys. Threads may use it at one time."""

    def __init__(self) -> None:
        self._rows: dict[Key, Vectors] = {}
        self._lock = threading.Lock()

    def put(self, rows: Mapping[Key, Vectors]) -> None:
        """Keep vectors, in place of those with the same keys."""
        with self._lock:
            self._rows = {**self._rows, **rows}

    def remove(self, keys: Iterable[Key]) -> None:
        """Forget vectors."""
        gone = set(keys)
        with self._lock:
            self._rows = {key: row for key, row in self._rows.items() if key not in gone}

    def keys(self) -> Collection[Key]:
        """Return all keys."""
        return self._rows.keys()

    def cosines(self, vector: Vectors, keys: Iterable[Key]) -> dict[Key, float]:
        """Return how near those of some keys are that there are.

        One of another dimension, and a zero vector, has 0.
        """
        rows, length = self._rows, float(np.linalg.norm(vector))
        found = [key for key in keys if key in rows]
        alike = [key for key in found if rows[key].shape == vector.shape]
        cosines = dict.fromkeys(found, 0.0)
        if alike and length:
            matrix = np.stack([rows[key] for key in alike]).astype(np.float64)
            lengths = np.linalg.norm(matrix, axis=1) * length
            products = matrix @ vector.astype(np.float64)
            scores = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
            cosines.update(zip(alike, scores.tolist(), strict=True))
        return cosines

    def nearest(self, vector: Vectors, count: int, keys: Iterable[Key]) -> list[Key]:
        """Return the nearest of some keys, of equal ones the smaller first."""
        cosines = self.cosines(vector, keys)
        return sorted(cosines, key=lambda key: (-round(cosines[key], _DECIMALS), key))[:count]
