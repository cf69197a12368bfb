"""Embeds the texts of a catalog that have no vector yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy.typing as npt

from standards_mcp.catalog.embedding.minilm import TextEncoder, normalised

from .truth import Truth

_TEXTS_KEPT_AT_ONCE = 512


def embed_missing(
    truth: Truth, encoder: TextEncoder, progress: Callable[[int, int], None] | None = None
) -> None:
    """Embed the texts of *truth* that *encoder* has not embedded yet.

    Vectors are kept batch by batch, so that an interrupted run goes on where it stopped.

    Args:
        progress: Is told (done, total) after each batch.
    """
    texts = truth.texts_without_vector(encoder.name)
    for start in range(0, len(texts), _TEXTS_KEPT_AT_ONCE):
        batch = texts[start : start + _TEXTS_KEPT_AT_ONCE]
        vectors = encoder.encode([text for _, text in batch])
        keep_vectors(truth, encoder.name, [hash_ for hash_, _ in batch], vectors)
        if progress is not None:
            progress(start + len(batch), len(texts))


def keep_vectors(truth: Truth, model: str, hashes: Iterable[str], vectors: npt.ArrayLike) -> None:
    """Keep the vectors of texts, shape (texts, dimensions), under the hashes of the texts."""
    rows = normalised(vectors).astype("<f4")
    pairs = zip(hashes, rows, strict=True)
    truth.add_vectors(model, [(hash_, row.tobytes()) for hash_, row in pairs])
