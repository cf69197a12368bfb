"""Makes a dataset of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from .chunks import cut
from .document import Document, DocumentError
from .files import Passage, write_dataset
from .finding import Source, find_sources
from .options import BuildError, BuildOptions, BuildReport, Skipped
from .previous import known_vectors
from .publishing import drafting, writing
from .readers import read_document
from .work import Vectors, Work

_TEXTS_AT_ONCE: Final = 16
_LONGEST_TITLE: Final = 200

Progress = Callable[[int, int], None]


def build_dataset(
    folder: Path,
    out: Path,
    options: BuildOptions,
    work: Work,
    progress: Progress,
    others: Sequence[Path] = (),
) -> BuildReport:
    """Make a dataset of the documents in *folder*, or bring the one at *out* up to date.

    The dataset at *out* is replaced as a whole at the end: whatever happens before, it stays.
    Passages with the same title and text as in it, or in one of *others*, keep their vectors.

    Args:
        out: The dataset's folder.
        others: Folders of further datasets.
        progress: Called with the number of passages that have a vector, and of all passages.

    Raises:
        BuildError: *folder* is no folder, or *out* cannot be written, or not without loss.
    """
    if not folder.is_dir():
        raise BuildError(f"{folder} is not a folder; name one that holds the documents")
    with drafting(out, options.id) as draft:
        sources, skipped = find_sources(folder, options.include)
        passages = list(_read(sources, options, work, skipped))
        unchanged = 0
        if passages:
            texts = [passage.to_encode for passage in passages]
            known = known_vectors((draft.out, *others), options.model, set(texts), work)
            unchanged = sum(text in known for text in texts)
            vectors = _encode(texts, known, work, progress)
            with writing(draft.out):
                write_dataset(draft.folder, options, passages, vectors, work)
                draft.publish()
    return BuildReport(
        id=options.id,
        path=draft.out,
        files=len({passage.path for passage in passages}),
        chunks=len(passages),
        unchanged=unchanged,
        skipped=sorted(skipped, key=lambda each: each.path),
    )


def _read(
    sources: Iterable[Source], options: BuildOptions, work: Work, skipped: list[Skipped]
) -> Iterator[Passage]:
    for source in sources:
        try:
            document = read_document(source.path, work)
        except DocumentError as error:
            skipped.append(Skipped(source.name, str(error)))
        else:
            yield from _passages(source.name, document, options)


def _passages(name: str, document: Document, options: BuildOptions) -> Iterator[Passage]:
    title = document.title or PurePosixPath(name).stem.replace("-", " ")
    contents = [
        (_full_title(title, section.heading), content)
        for section in document.sections
        for content in cut(section.blocks, options.chunk_words, options.overlap_words)
    ]
    for number, (full_title, content) in enumerate(contents, 1):
        yield Passage(name, full_title, content, number, len(contents))


def _full_title(title: str, heading: str) -> str:
    full = title if heading in {"", title} else f"{title}: {heading}"
    return full[:_LONGEST_TITLE]


def _encode(
    texts: Sequence[str], known: dict[str, Vectors], work: Work, progress: Progress
) -> Vectors:
    missing = list(dict.fromkeys(text for text in texts if text not in known))
    total = len(known) + len(missing)
    progress(len(known), total)
    for start in range(0, len(missing), _TEXTS_AT_ONCE):
        batch = missing[start : start + _TEXTS_AT_ONCE]
        known.update(zip(batch, work.encode(batch), strict=True))
        progress(len(known), total)
    return np.stack([known[text] for text in texts])
