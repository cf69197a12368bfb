"""The vectors of an index: a rough cosine for every row, and the exact one for the best rows.

The score of a row is the greatest cosine of its vector and a passage of the query, mixed with the
mean score of its two nearest phrases, if it has phrases. Eight-bit vectors are a quarter of the
memory to read, and select the rows that get an exact score.

vectors.npy    float32 (rows + phrases, dimensions): first of the rows, then of the phrases
rough.npy      int8, the same vectors, each scaled to a greatest number of 127
scales.npy     float32 (rows + phrases,): the factors that undo this scaling
wordings.npy   int32 (rows,): the line of phrases.npy for each row, -1 for none
phrases.npy    int32 (lines, most): at least two places in vectors.npy, padded with -1
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import simsimd

from standards_mcp_catalog.starter import query_matrix
from standards_mcp_encoders.minilm import normalised

from .columns import Mask
from .lexical import Ranked

Floats: TypeAlias = npt.NDArray[np.float32]
Numbers: TypeAlias = npt.NDArray[np.int32]
Rows: TypeAlias = npt.NDArray[np.int64]
ReadArray: TypeAlias = Callable[[str, type, tuple[int | None, ...]], npt.NDArray[Any]]

_BLOCK: Final = 2**16  # rows whose eight-bit vectors are copied at once, if a filter scatters them
_RESCORED: Final = 200
"""Minimum number of the roughly best rows that get an exact score (docs/benchmarks.md)."""
_FEW_ROWS: Final = 700
"""Up to so many rows, exact scores of all take less time than rough scores before them."""
# Chosen on real queries of all sources, see docs/benchmarks.md. Phrases are less like a query than
# whole texts are, and a row with phrases must not lose by them.
_PHRASES_SHARE: Final = 0.3
_PHRASES_LIFT: Final = 0.05


class StoredVectors(NamedTuple):
    """The arrays of these files."""

    exact: Floats
    rough: npt.NDArray[np.int8]
    scales: Floats
    wordings: Numbers
    phrases: Numbers

    @classmethod
    def read(cls, read: ReadArray, rows: int, dimensions: int) -> StoredVectors:
        """Return the vectors of *rows* rows; *read* opens a file and checks its type and shape."""
        exact = read("vectors.npy", np.float32, (None, dimensions))
        arrays = (
            exact,
            read("rough.npy", np.int8, exact.shape),
            read("scales.npy", np.float32, exact.shape[:1]),
            read("wordings.npy", np.int32, (rows,)),
            read("phrases.npy", np.int32, (None, None)),
        )
        return cls(*map(np.asarray, arrays))  # slices of a memory map are slow to make


def write_vectors(
    folder: Path,
    parts: Iterable[Floats],
    shape: tuple[int, int],
    wordings: Numbers,
    phrases: Numbers,
) -> None:
    """Write the files; *parts* are the vectors of the rows and then of the phrases."""
    scales = [np.zeros(0, np.float32)]
    with (
        array_file(folder / "vectors.npy", "<f4", shape) as exact,
        array_file(folder / "rough.npy", "|i1", shape) as rough,
    ):
        for part in parts:
            numbers, factors = in_eight_bits(part)
            exact.write(part.astype("<f4").tobytes())
            rough.write(numbers.tobytes())
            scales.append(factors)
    np.save(folder / "scales.npy", np.concatenate(scales))
    np.save(folder / "wordings.npy", wordings)
    np.save(folder / "phrases.npy", phrases)


@contextmanager
def array_file(path: Path, kind: str, shape: tuple[int, int]) -> Generator[BinaryIO, None, None]:
    """Open a file of an array that is written row by row."""
    with path.open("wb") as file:
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        yield file


def in_eight_bits(vectors: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return *vectors*, each scaled to a greatest number of 127, and the factors that undo it."""
    factors = np.abs(vectors).max(axis=1, initial=0) / 127
    numbers = np.rint(vectors / np.maximum(factors, np.finfo(np.float32).tiny)[:, None])
    return numbers.astype(np.int8), factors.astype(np.float32)


def towards_standards(queries: Floats) -> Floats:
    """Return vectors of the built-in encoder, turned towards the standards that they are about.

    The matrix was trained on phrases in teachers' words, by ``scripts/train_queries.py``.
    """
    return normalised(queries @ _query_matrix())


@cache
def _query_matrix() -> Floats:
    matrix: Floats = query_matrix().astype(np.float32)
    return matrix


class Nearness:
    """The scores of rows for one query.

    Args:
        queries: Vectors of the query's passages, of length 1, shape (passages, dimensions).
        mask: The rows to search; None searches all.
    """

    def __init__(self, vectors: StoredVectors, queries: Floats, mask: Mask | None) -> None:
        self._vectors = vectors
        self._queries = queries
        self._rows = np.arange(vectors.wordings.size) if mask is None else np.flatnonzero(mask)

    def best(self, depth: int) -> Ranked:
        """Return the *depth* nearest rows, the nearest first, with their exact scores."""
        rows = self._rows
        if rows.size > _FEW_ROWS:
            rows = best(self._rough_ranking, max(_RESCORED, 2 * depth)).rows
        return best(Ranked(rows, self.exact(rows)), depth)

    @cached_property
    def _rough_ranking(self) -> Ranked:
        return Ranked(self._rows, self._with_phrases(self._rows, self._rough_scores))

    def exact(self, rows: Rows) -> Floats:
        """Return the exact score of each of *rows*."""
        return self._with_phrases(rows, self._exact_scores)

    def nearest_phrase(self, row: int) -> int | None:
        """Return the place of the phrase of *row* that is nearer than the row's own vector, if any.

        Places count from the first phrase in ``vectors.npy``.
        """
        if (line := self._vectors.wordings[row]) < 0:
            return None
        phrases = self._vectors.phrases[line]
        places = np.append(row, phrases[phrases >= 0])
        nearest = int(places[self._exact_scores(places).argmax()])
        return None if nearest == row else nearest - self._vectors.wordings.size

    def _with_phrases(self, rows: Rows, score: Callable[[Rows], Floats]) -> Floats:
        """Return the *score* of each of *rows*, mixed with those of its two nearest phrases."""
        scores, wordings = score(rows), self._vectors.wordings[rows]
        have_phrases = np.flatnonzero(wordings >= 0)
        if not have_phrases.size:
            return scores
        lines, places = np.unique(wordings[have_phrases], return_inverse=True)
        phrases = self._vectors.phrases[lines]
        by_line = np.full(phrases.shape, -1, np.float32)
        by_line[phrases >= 0] = score(phrases[phrases >= 0].astype(np.int64))
        by_line.sort(axis=1)
        nearest = by_line[:, -2:].mean(axis=1)[places] + np.float32(_PHRASES_LIFT)
        scores[have_phrases] += np.float32(_PHRASES_SHARE) * (nearest - scores[have_phrases])
        return scores

    def _exact_scores(self, rows: Rows) -> Floats:
        return _greatest_products(self._queries, self._vectors.exact.take(rows, axis=0))

    def _rough_scores(self, rows: Rows) -> Floats:
        # One factor for all passages, so that the greatest of their whole numbers is the nearest.
        factor = float(np.abs(self._queries).max(initial=0)) / 127 or 1.0
        passages = np.rint(self._queries / factor).astype(np.int8)
        scores = np.empty(rows.size, np.float32)
        for start in range(0, rows.size, _BLOCK):
            part = rows[start : start + _BLOCK]
            first, end = int(part[0]), int(part[-1]) + 1
            if end - first < 2 * part.size:  # reading the rows between is faster than gathering
                products = _greatest_products(passages, self._vectors.rough[first:end])
                products *= self._vectors.scales[first:end]
                if products.size != part.size:
                    products = products[part - first]
            else:
                products = _greatest_products(passages, self._vectors.rough.take(part, axis=0))
                products *= self._vectors.scales[part]
            scores[start : start + part.size] = products
        scores *= np.float32(factor)
        return scores


def _greatest_products(passages: npt.NDArray[Any], rows: npt.NDArray[Any]) -> Floats:
    if not rows.size:
        return np.zeros(0, np.float32)
    # NumPy's product has threads of its own, which wait for each other on a busy machine.
    products = np.asarray(simsimd.cdist(passages, rows, "dot", out_dtype="float32"))
    greatest: Floats = products.reshape(len(passages), len(rows)).max(axis=0)
    return greatest


def best(ranked: Ranked, depth: int) -> Ranked:
    """Return the *depth* best of *ranked*, best first; of equal scores the lower row first."""
    rows, scores = ranked
    if rows.size > depth:
        chosen = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
        rows, scores = rows[chosen], scores[chosen]
    order = np.lexsort((rows, -scores))[:depth]
    return Ranked(rows[order], scores[order])
