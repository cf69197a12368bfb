"""Embed texts, keep vectors in memory, and compare them by cosine."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from standards_mcp import ApiError, ServiceError
from standards_mcp_encoders import Vectors, open_encoder, shown_spec

from .primitives import hash64, tokens
from .settings import STUB
from .store.runs import Source

_NONE: Final = "none"
_DIMENSIONS: Final = 128
_NEIGHBOUR: Final = np.float32(0.3)


class Embedder(Protocol):
    """An encoder of texts."""

    @property
    def source(self) -> Source:
        """The encoder, to compare runs of the index."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text.

        Raises:
            ApiError: The encoder fails.
        """
        ...


class StubEmbedder:
    """Embed texts by hashed words, the same on every machine."""

    source = Source("deterministic-stub", f"hash64-{_DIMENSIONS}", "none")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text; a text without words gets a zero vector."""
        rows = [_stub_vector(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(rows), _DIMENSIONS)


def _stub_vector(text: str) -> Vectors:
    vector = np.zeros(_DIMENSIONS, dtype=np.float32)
    # The original words under both settings of `tokens`, so that indexes stay valid.
    for token, count in sorted(Counter(tokens(text)).items()):
        index, weight = int(hash64(token), 16) % _DIMENSIONS, np.float32(count)
        vector[index] += weight
        for neighbour in (index - 1, index + 1):
            vector[neighbour % _DIMENSIONS] += _NEIGHBOUR * weight
    # A sequential sum, as in other implementations; `np.linalg.norm` adds in blocks.
    norm = np.sqrt(np.cumsum(vector * vector, dtype=np.float32)[-1])
    return vector / norm if norm else vector


class CatalogEmbedder:
    """Embed texts by an encoder of the catalog.

    Args:
        spec: The encoder, as in the catalog's setting ``model``, such as ``minilm``.
    """

    def __init__(self, spec: str) -> None:
        self.source = Source("catalog", shown_spec(spec), "none")
        self._spec = spec

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row of length 1 for each text. See `Embedder`."""
        try:
            encoder = open_encoder(self._spec, remedy="check plugins.career.embedding")
            return encoder.encode(texts)
        except ServiceError as error:
            raise ApiError(f"The encoder of plugins.career.embedding failed: {error}") from error


def embedder_of(spec: str) -> Embedder | None:
    """Return the embedder of a setting; None for ``none``."""
    if spec == _NONE:
        return None
    return StubEmbedder() if spec == STUB else CatalogEmbedder(spec)


def vector_hash(vector: Vectors) -> str:
    """Return the FNV-1a hash of a vector's numbers as little-endian bytes."""
    return hash64(vector.astype("<f4").tobytes())


Key: TypeAlias = tuple[str, str]
"""The kind and the id of an embedded artifact."""
Scores: TypeAlias = NDArray[np.float64]
_DECIMALS: Final = 9
"""Smaller differences are ignored, so that cosines do not depend on the size of the matrix."""


class Kept(NamedTuple):
    """A vector.

    Attributes:
        source_hash: The hash of the embedded text.
    """

    source_hash: str
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Table:
    """The vectors of one kind.

    Attributes:
        ids: Sorted.
        parts: For each dimension, positions in *ids* and vectors of length 1 or 0.
    """

    ids: Sequence[str]
    parts: Mapping[int, tuple[NDArray[np.intp], Scores]]

    def cosines(self, vectors: Vectors) -> Scores:
        """Return a row for each vector, with its cosine to each of *ids*.

        The cosine is 0 for a zero vector and for another dimension.
        """
        scores = np.zeros((len(vectors), len(self.ids)))
        if (part := self.parts.get(vectors.shape[1])) is not None:
            places, rows = part
            scores[:, places] = (_of_length_1(vectors) @ rows.T).round(_DECIMALS)
        return scores


class VectorStore(Protocol):
    """Vectors by key. Thread-safe.

    Each method raises `ApiError` if the storage fails.
    """

    def put(self, rows: Mapping[Key, Kept]) -> None:
        """Store vectors of one dimension, and replace vectors with the same keys."""
        ...

    def remove(self, keys: Iterable[Key]) -> None:
        """Delete vectors."""
        ...

    def settle(self) -> None:
        """Clean up after a build."""
        ...

    def hashes(self) -> Mapping[Key, str]:
        """Return the source hash of each vector."""
        ...

    def table(self, kind: str) -> Table:
        """Return the current vectors of a kind."""
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
        """Do nothing: memory needs no cleanup."""

    def remove(self, keys: Iterable[Key]) -> None:
        """Delete vectors."""
        gone = set(keys)
        with self._lock:
            self._rows = {key: row for key, row in self._rows.items() if key not in gone}
            self._tables.clear()

    def hashes(self) -> Mapping[Key, str]:
        """Return the source hash of each vector."""
        return {key: kept.source_hash for key, kept in self._rows.items()}

    def table(self, kind: str) -> Table:
        """Return the current vectors of a kind."""
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
            dimension: (np.array(at), _of_length_1(np.stack([rows[ids[place]] for place in at])))
            for dimension, at in places.items()
        },
    )


def _of_length_1(vectors: Vectors) -> Scores:
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Scores = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled
