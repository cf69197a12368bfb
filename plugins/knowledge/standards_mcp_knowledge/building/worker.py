"""What runs in a worker process. Heavy libraries are imported when a function is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .document import Document
from .work import Vectors


def read_pdf(path: Path) -> Document:
    """See `Work.read_pdf`."""
    from .readers import pdf  # noqa: PLC0415

    return pdf.read_pdf(path)


def read_docx(path: Path) -> Document:
    """See `Work.read_docx`."""
    from .readers import docx  # noqa: PLC0415

    return docx.read_docx(path)


def read_vectors(path: Path) -> Vectors:
    """See `Work.read_vectors`."""
    import faiss  # noqa: PLC0415

    try:
        index: Any = faiss.read_index(str(path))
        vectors: Vectors = index.reconstruct_n(0, index.ntotal)
    except (RuntimeError, AssertionError, MemoryError) as error:
        raise OSError(" ".join(str(error).split())) from error
    return vectors


def write_index(vectors: Vectors, path: Path) -> None:
    """See `Work.write_index`."""
    import faiss  # noqa: PLC0415

    index: Any = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    # FAISS's own writer does not tell why it failed.
    path.write_bytes(faiss.serialize_index(index).tobytes())
