"""Make a dataset of a folder: cut documents into passages, and encode them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from standards_mcp_documents import Document, DocumentError, DocumentReader, Limits
from standards_mcp_encoders import Vectors
from standards_mcp_knowledge.documents import SNIPPET_LENGTH, Passage
from standards_mcp_knowledge.workers.blocking import Workers

from .dataset_files import locked_for_build, reusable_vectors, text_to_encode, write_dataset
from .options import BuildError, BuildOptions, BuildReport, Skipped
from .passages import cut
from .sources import find_sources

_LIMITS: Final = Limits(seconds=300, memory=2 * 10**9, unpacked=200_000_000)
"""Manuals may be much larger than the documents that users send."""
_TEXTS_AT_ONCE: Final = 16
_LONGEST_TITLE: Final = 200

Progress = Callable[[int, int], None]


def build_dataset(
    folder: Path,
    out: Path,
    options: BuildOptions,
    workers: Workers,
    progress: Progress,
    reusable: Sequence[Path] = (),
) -> BuildReport:
    """Make a dataset of the documents in *folder*, or bring the one at *out* up to date.

    The dataset at *out* is replaced as a whole at the end; after an error, it is unchanged. The
    vectors of passages with the same title and text are reused from *out* and *reusable*.

    Args:
        out: The dataset's folder.
        reusable: Folders of further datasets whose vectors can be reused.
        progress: Called with the numbers of encoded and of all distinct passages.

    Raises:
        BuildError: *folder* is not a folder, or *out* cannot be replaced without loss.
    """
    if not folder.is_dir():
        raise BuildError(f"{folder} is not a folder; name one that holds the documents")
    out = out.expanduser().resolve()
    identifier = options.manifest.id
    unchanged = 0
    with locked_for_build(out, identifier):
        names, skipped = find_sources(folder, options.include)
        passages = list(_read(folder, names, options, skipped))
        if passages:
            texts = list(map(text_to_encode, passages))
            vectors = reusable_vectors((out, *reusable), options.model, set(texts), workers)
            unchanged = sum(text in vectors for text in texts)
            rows = _encode(texts, vectors, options.model, workers, progress)
            write_dataset(out, options, passages, rows, workers)
    return BuildReport(
        id=identifier,
        path=str(out),
        files=len({passage.get("path") for passage in passages}),
        chunks=len(passages),
        unchanged=unchanged,
        skipped=sorted(skipped, key=lambda skip: skip.path),
    )


def _read(
    folder: Path, names: Iterable[str], options: BuildOptions, skipped: list[Skipped]
) -> Iterator[Passage]:
    numbers = count(1)
    with DocumentReader(_LIMITS) as reader:
        for name in names:
            try:
                document = reader.read(folder / name)
            except DocumentError as error:
                skipped.append(Skipped(name, str(error)))
                continue
            for passage in _passages(name, document, options):
                yield {"id": f"{options.manifest.id}-{next(numbers)}", **passage}


def _passages(path: str, document: Document, options: BuildOptions) -> Iterator[Passage]:
    title = document.title or PurePosixPath(path).stem.replace("-", " ")
    contents = [
        (title if section.heading in {"", title} else f"{title}: {section.heading}", content)
        for section in document.sections
        for content in cut(
            list(section.markdown_blocks()), options.chunk_words, options.overlap_words
        )
    ]
    for number, (full_title, content) in enumerate(contents, 1):
        yield {
            "title": full_title[:_LONGEST_TITLE],
            "path": path,
            "content": content,
            "snippet": content[:SNIPPET_LENGTH],
            "chunk": number,
            "chunk_total": len(contents),
        }


def _encode(
    texts: Sequence[str],
    vectors: dict[str, Vectors],
    model: str,
    workers: Workers,
    progress: Progress,
) -> Vectors:
    """Return a row for each text. Encode texts that *vectors* lacks, and add them to it."""
    missing = list(dict.fromkeys(text for text in texts if text not in vectors))
    total = len(vectors) + len(missing)
    progress(len(vectors), total)
    for start in range(0, len(missing), _TEXTS_AT_ONCE):
        batch = missing[start : start + _TEXTS_AT_ONCE]
        vectors.update(zip(batch, workers.encode(batch, model), strict=True))
        progress(len(vectors), total)
    return np.stack([vectors[text] for text in texts])
