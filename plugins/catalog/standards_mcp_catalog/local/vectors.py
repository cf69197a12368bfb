"""The vectors of a catalog's texts, which are made once and kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy.typing as npt

from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.chunks import chunks
from standards_mcp_encoders.minilm import TextEncoder, normalised

from .database import Database

_BATCH = 512


def embed_missing(
    database: Database, encoder: TextEncoder, progress: Progress | None = None
) -> None:
    """Embed the texts of *database* that *encoder* has not embedded yet.

    Vectors are saved batch by batch, so that an interrupted run goes on where it stopped.

    Args:
        progress: Is told (done, total) after each batch.
    """
    texts, done = database.texts_without_vector(encoder.name), 0
    for batch in chunks(texts, _BATCH):
        vectors = encoder.encode([text for _, text in batch])
        save_vectors(database, encoder.name, [hash_ for hash_, _ in batch], vectors)
        done += len(batch)
        if progress is not None:
            progress(done, len(texts))


def save_vectors(
    database: Database, model: str, hashes: Iterable[str], vectors: npt.ArrayLike
) -> None:
    """Save the vectors of texts, shape (texts, dimensions), under the hashes of the texts."""
    pairs = zip(hashes, normalised(vectors).astype("<f4"), strict=True)
    database.add_vectors(model, [(hash_, row.tobytes()) for hash_, row in pairs])
