"""Embed texts, keep vectors in memory, and compare them by cosine."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from standards_mcp import ApiError, ServiceError
from standards_mcp_encoders import Vectors, encoder_name, open_encoder

from .primitives import hash64, tokens
from .settings import STUB

_DIMENSIONS: Final = 128
_NEIGHBOUR: Final = np.float32(0.3)


class Source(NamedTuple):
    """The encoder of an index run. Only runs with the same source are compared."""

    provider_id: str
    model_id: str
    prompt_version: str


@dataclass(frozen=True, slots=True)
class Embedder:
    """An encoder of texts.

    Attributes:
        embed: Returns a row for each text, and raises `ApiError` if the encoder fails.
    """

    source: Source
    embed: Callable[[Sequence[str]], Vectors]


def _embed_with_stub(texts: Sequence[str]) -> Vectors:
    """Embed texts by hashed words, equally on every machine. A text without words gives zeros."""
    vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
    for row, text in enumerate(texts):
        vector = vectors[row]
        # The same words for both values of the setting `tokens`, so that indexes stay valid.
        for token, count in sorted(Counter(tokens(text)).items()):
            index, weight = int(hash64(token), 16) % _DIMENSIONS, np.float32(count)
            vector[index] += weight
            for neighbour in (index - 1, index + 1):
                vector[neighbour % _DIMENSIONS] += _NEIGHBOUR * weight
        # A sequential sum, as in other implementations; `np.linalg.norm` adds in blocks.
        if norm := np.sqrt(np.cumsum(vector * vector, dtype=np.float32)[-1]):
            vector /= norm
    return vectors


STUB_EMBEDDER: Final = Embedder(
    Source("deterministic-stub", f"hash64-{_DIMENSIONS}", "none"), _embed_with_stub
)


def embedder_of(spec: str) -> Embedder | None:
    """Return the embedder of a setting: the stub, a text encoder, or None for ``none``."""
    if spec in (STUB, "none"):
        return STUB_EMBEDDER if spec == STUB else None

    def embed(texts: Sequence[str]) -> Vectors:
        try:
            return open_encoder(spec, remedy="check plugins.career.embedding").encode(texts)
        except ServiceError as error:
            raise ApiError(f"The encoder of plugins.career.embedding failed: {error}") from error

    return Embedder(Source("catalog", encoder_name(spec), "none"), embed)


Key: TypeAlias = tuple[str, str]
"""The kind and the id of an artifact."""
Scores: TypeAlias = NDArray[np.float64]
_DECIMALS: Final = 9
"""Cosines are rounded, so that they do not depend on the size of the matrix."""


class StoredVector(NamedTuple):
    """The vector of an artifact.

    Attributes:
        source_hash: The hash of the embedded text.
    """

    source_hash: str
    vector: Vectors


class Table(NamedTuple):
    """The vectors of one kind.

    Attributes:
        ids: Sorted.
        rows: Vectors with norm 1, or 0 in place of a vector of another dimension.
    """

    ids: Sequence[str]
    rows: Scores

    def cosines(self, vectors: Vectors) -> Scores:
        """Return a row for each vector, with its cosine to each of *ids*."""
        scores: Scores = (_normalised(vectors) @ self.rows.T).round(_DECIMALS)
        return scores


class MemoryVectors:
    """Vectors by key, in memory. Thread-safe.

    A subclass may persist the vectors. Its methods raise `ApiError` if the storage fails.
    """

    def __init__(self) -> None:
        self._rows: dict[Key, StoredVector] = {}
        self._tables: dict[tuple[str, int], Table] = {}
        self._lock = threading.RLock()

    def put(self, rows: Mapping[Key, StoredVector]) -> None:
        """Store vectors of one dimension, and replace vectors with the same keys."""
        if rows:
            with self._changing():
                self._replace({**self._rows, **rows})

    def remove(self, keys: Iterable[Key]) -> None:
        """Delete vectors."""
        if removed := set(keys):
            with self._changing():
                self._replace({key: row for key, row in self._rows.items() if key not in removed})

    def clean_up(self) -> None:
        """Clean up after a build. Memory needs no cleanup."""

    def hashes(self) -> Mapping[Key, str]:
        """Return the source hash of each vector."""
        with self._lock:
            self._refresh()
            return {key: stored.source_hash for key, stored in self._rows.items()}

    def table(self, kind: str, dimension: int) -> Table:
        """Return the current vectors of a kind, for queries of a dimension."""
        with self._lock:
            self._refresh()
            if (kind, dimension) not in self._tables:
                ids = sorted(identifier for name, identifier in self._rows if name == kind)
                rows = np.zeros((len(ids), dimension), dtype=np.float32)
                for place, identifier in enumerate(ids):
                    vector = self._rows[kind, identifier].vector
                    if len(vector) == dimension:
                        rows[place] = vector
                self._tables[kind, dimension] = Table(ids, _normalised(rows))
            return self._tables[kind, dimension]

    def _changing(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread or process changes vectors."""
        return self._lock

    def _refresh(self) -> None:
        """Load changes of other processes. Vectors in memory have none."""

    def _replace(self, rows: dict[Key, StoredVector]) -> None:
        self._rows = rows
        self._tables.clear()


def _normalised(vectors: Vectors) -> Scores:
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Scores = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled
