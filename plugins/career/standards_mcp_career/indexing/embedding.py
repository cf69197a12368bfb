"""What makes vectors of texts: a deterministic stub, or an encoder of the catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from standards_mcp import ApiError, ServiceError
from standards_mcp_career.domain.text import hash64, tokens
from standards_mcp_career.settings import STUB
from standards_mcp_career.store.runs import Source
from standards_mcp_encoders import Vectors, open_encoder, shown_spec

_NONE: Final = "none"
_DIMENSIONS: Final = 128
_NEIGHBOUR: Final = np.float32(0.3)


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def source(self) -> Source:
        """What the vectors are made by."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text.

        Raises:
            ApiError: The encoder fails.
        """
        ...


class StubEmbedder:
    """Makes vectors of hashed words, the same on every machine."""

    source = Source("deterministic-stub", f"hash64-{_DIMENSIONS}", "none")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text; that of a text without words is zero."""
        rows = [_stub_vector(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(rows), _DIMENSIONS)


def _stub_vector(text: str) -> Vectors:
    vector = np.zeros(_DIMENSIONS, dtype=np.float32)
    for token, count in sorted(Counter(tokens(text)).items()):
        index, weight = int(hash64(token), 16) % _DIMENSIONS, np.float32(count)
        vector[index] += weight
        for neighbour in (index - 1, index + 1):
            vector[neighbour % _DIMENSIONS] += _NEIGHBOUR * weight
    # Added one after the other, as other implementations do; `np.linalg.norm` adds in blocks.
    norm = np.sqrt(np.cumsum(vector * vector, dtype=np.float32)[-1])
    return vector / norm if norm else vector


class CatalogEmbedder:
    """Makes vectors by an encoder of the catalog.

    Args:
        spec: As the catalog's setting ``model`` has it, such as ``minilm``.
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
    """Return what a setting names; None for ``none``: no vectors."""
    if spec == _NONE:
        return None
    return StubEmbedder() if spec == STUB else CatalogEmbedder(spec)


def vector_hash(vector: Vectors) -> str:
    """Return the FNV-1a hash of a vector's numbers as little-endian bytes."""
    return hash64(vector.astype("<f4").tobytes())
