"""The vector half of the index: the exact cosine of every row that a filter lets through."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from .columns import Mask
from .lexical import Ranked

_BLOCK = 512  # rows; a block of them and its product stay in the processor's cache
_MOST_THREADS = 8  # more than these wait for the memory
_FEW = 8 * _BLOCK  # rows that are done before threads would have started


def cosines(
    vectors: npt.NDArray[np.float32], queries: npt.NDArray[np.float32], mask: Mask | None
) -> Ranked:
    """Return the rows of *mask*, ascending, each with its greatest cosine with one of *queries*.

    Args:
        vectors: Of length 1 at most, shape (rows, dimensions).
        queries: Of length 1, shape (queries, dimensions).
        mask: Which rows to score; None scores all.
    """
    vectors = np.asarray(vectors)  # slices of a memory map are slow to make
    rows = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    scores = np.empty(rows.size, dtype=np.float32)
    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    if rows.size <= _FEW or threads == 1:
        _score(vectors, queries, rows, scores)
        return Ranked(rows, scores)
    # NumPy lets other threads run meanwhile, and shares no product of this shape among threads.
    with ThreadPoolExecutor(threads) as pool:
        shares = zip(np.array_split(rows, threads), np.array_split(scores, threads), strict=True)
        for done in [pool.submit(_score, vectors, queries, *share) for share in shares]:
            done.result()
    return Ranked(rows, scores)


def _score(
    vectors: npt.NDArray[np.float32],
    queries: npt.NDArray[np.float32],
    rows: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float32],
) -> None:
    for start in range(0, rows.size, _BLOCK):
        part = rows[start : start + _BLOCK]
        first, last = int(part[0]), int(part[-1])
        if last - first < 2 * part.size:  # reading what lies between costs less than gathering
            found = (vectors[first : last + 1] @ queries.T).max(axis=1)[part - first]
        else:
            found = (vectors.take(part, axis=0) @ queries.T).max(axis=1)
        scores[start : start + part.size] = found


def best(ranked: Ranked, depth: int) -> Ranked:
    """Return the *depth* best of *ranked*, best first; of equal scores the lower row first."""
    rows, scores = ranked
    if rows.size > depth:
        chosen = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
        rows, scores = rows[chosen], scores[chosen]
    order = np.lexsort((rows, -scores))[:depth]
    return Ranked(rows[order], scores[order])
