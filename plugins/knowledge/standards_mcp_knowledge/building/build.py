"""Make a dataset of a folder: cut documents into passages, and encode them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import numpy as np

from .dataset_files import Passage, known_vectors, write_dataset
from .document import Block, Document, DocumentError
from .options import BuildError, BuildOptions, BuildReport, Skipped, Vectors, Work
from .publishing import drafting, writing
from .sources import SourceFile, find_sources, read_document

_TEXTS_AT_ONCE: Final = 16
_LONGEST_TITLE: Final = 200

Progress = Callable[[int, int], None]


def build_dataset(
    folder: Path,
    out: Path,
    options: BuildOptions,
    work: Work,
    progress: Progress,
    reusable: Sequence[Path] = (),
) -> BuildReport:
    """Make a dataset of the documents in *folder*, or bring the one at *out* up to date.

    The dataset at *out* is replaced as a whole at the end, and stays if anything fails before.
    Passages with the same title and text as in it, or in one of *reusable*, keep their vectors.

    Args:
        out: The dataset's folder.
        reusable: Folders of further datasets whose vectors can be reused.
        progress: Called with the number of passages that have a vector, and of all passages.

    Raises:
        BuildError: *folder* is not a folder, or *out* cannot be replaced without loss.
    """
    if not folder.is_dir():
        raise BuildError(f"{folder} is not a folder; name one that holds the documents")
    with drafting(out, options.id) as draft:
        sources, skipped = find_sources(folder, options.include)
        passages = list(_read(sources, options, work, skipped))
        unchanged = 0
        if passages:
            texts = [passage.to_encode for passage in passages]
            reused = known_vectors((draft.out, *reusable), options.model, set(texts), work)
            unchanged = sum(text in reused for text in texts)
            vectors = _encode(texts, reused, work, progress)
            with writing(draft.out):
                write_dataset(draft.folder, options, passages, vectors, work)
                draft.publish()
    return BuildReport(
        id=options.id,
        path=draft.out,
        files=len({passage.path for passage in passages}),
        chunks=len(passages),
        unchanged=unchanged,
        skipped=sorted(skipped, key=lambda skip: skip.path),
    )


def _read(
    sources: Iterable[SourceFile], options: BuildOptions, work: Work, skipped: list[Skipped]
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
    texts: Sequence[str], vectors: dict[str, Vectors], work: Work, progress: Progress
) -> Vectors:
    """Return a row for each text, after adding the missing ones to *vectors*."""
    missing = list(dict.fromkeys(text for text in texts if text not in vectors))
    total = len(vectors) + len(missing)
    progress(len(vectors), total)
    for start in range(0, len(missing), _TEXTS_AT_ONCE):
        batch = missing[start : start + _TEXTS_AT_ONCE]
        vectors.update(zip(batch, work.encode(batch), strict=True))
        progress(len(vectors), total)
    return np.stack([vectors[text] for text in texts])


WHOLE_CODE: Final = 4
"""Code stays whole up to this multiple of the words of a passage."""

# Chinese and Japanese have no spaces between words; very long words are usually data.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]{1,60}")
_BETWEEN: Final = "\n\n"


class _Piece(NamedTuple):
    """A word or a block of code, which is not cut; start and end are offsets in the section."""

    start: int
    end: int
    words: int
    is_code: bool


def cut(blocks: Sequence[Block], words: int, overlap: int) -> list[str]:
    """Return passages of at most *words* words, in order.

    A passage begins with the last *overlap* words of the one before it, but repeats no code.
    """
    text = _BETWEEN.join(block.text for block in blocks)
    pieces = list(_pieces(blocks, words * WHOLE_CODE))
    passages: list[str] = []
    first = end = 0
    while end < len(pieces):
        first = end - _repeated(pieces[first:end], min(overlap, words - pieces[end].words))
        end = _end_of(pieces, first, end, words)
        passages.append(text[pieces[first].start : pieces[end - 1].end])
    return passages


def _pieces(blocks: Sequence[Block], longest_code: int) -> Iterator[_Piece]:
    start = 0
    for block in blocks:
        spans = [match.span() for match in _WORD.finditer(block.text)]
        if block.is_code and 0 < len(spans) <= longest_code:
            yield _Piece(start, start + len(block.text), len(spans), is_code=True)
        else:
            for left, right in spans:
                yield _Piece(start + left, start + right, 1, is_code=False)
        start += len(block.text) + len(_BETWEEN)


def _repeated(passage: Sequence[_Piece], most: int) -> int:
    """Return the number of words at the end of a passage that the next one repeats."""
    count = 0
    while count < min(most, len(passage) - 1) and not passage[-1 - count].is_code:
        count += 1
    return count


def _end_of(pieces: Sequence[_Piece], first: int, end: int, words: int) -> int:
    """Return the end of a passage that begins at *first* and includes the piece at *end*."""
    count = end - first + pieces[end].words
    end += 1
    while end < len(pieces) and count + pieces[end].words <= words:
        count += pieces[end].words
        end += 1
    return end
