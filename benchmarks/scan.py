"""Scan: the nearest of a million vectors, in eight bits with the best rescored, and exactly.

usage: python benchmarks/scan.py [--rows 42287 1000000] [--pairs 10]

The peer is the exact product with all vectors, by NumPy. The two take turns; the median of the
ratios is the figure to quote. The vectors are random around a thousand centres, as texts are around
their topics.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from standards_mcp_catalog.local.index.lexical import Ranked
from standards_mcp_catalog.local.index.vectors import (
    Floats,
    Nearness,
    StoredVectors,
    best,
    in_eight_bits,
)
from standards_mcp_encoders.minilm import normalised

DIMENSIONS = 384
DEPTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[42_287, 1_000_000])
    parser.add_argument("--pairs", type=int, default=10)
    arguments = parser.parse_args()
    for rows in arguments.rows:
        random = np.random.default_rng(rows)
        vectors = stored(clustered(random, rows))
        queries = normalised(
            vectors.exact[random.integers(0, rows, arguments.pairs)]
            + random.normal(0, 0.03, (arguments.pairs, DIMENSIONS))
        )
        ratios, times, recalls = list[float](), list[float](), list[float]()
        for query in queries[:, None]:
            scan, exact = in_eight_bits_first(vectors, query), exactly(vectors, query)
            scan(), exact()
            (nearest, seconds), (right, peer_seconds) = timed(scan), timed(exact)
            times.append(seconds)
            ratios.append(seconds / peer_seconds)
            recalls.append(np.intersect1d(nearest, right).size / DEPTH)
        print(f"{rows:>9,} vectors: {statistics.median(times) * 1000:.1f} ms, ", end="")
        print(f"ratio to the exact product {statistics.median(ratios):.3f}, ", end="")
        print(f"recall@{DEPTH} {statistics.mean(recalls):.4f}", flush=True)


def clustered(random: np.random.Generator, rows: int) -> Floats:
    """Return vectors of length 1 around a thousand centres."""
    centres = random.normal(0, 1, (1000, DIMENSIONS)).astype(np.float32)
    found = np.empty((rows, DIMENSIONS), np.float32)
    for start in range(0, rows, 2**16):
        part = found[start : start + 2**16]
        part[:] = centres[random.integers(0, 1000, len(part))]
        part += random.normal(0, 0.7, part.shape).astype(np.float32)
        part[:] = normalised(part)
    return found


def stored(exact: Floats) -> StoredVectors:
    """Return the vectors as an index has them, without phrases."""
    rough, scales = np.empty(exact.shape, np.int8), np.empty(len(exact), np.float32)
    for start in range(0, len(exact), 2**16):
        part = slice(start, start + 2**16)
        rough[part], scales[part] = in_eight_bits(exact[part])
    without = np.full(len(exact), -1, np.int32)
    return StoredVectors(exact, rough, scales, without, np.full((0, 2), -1, np.int32))


def in_eight_bits_first(
    vectors: StoredVectors, query: Floats
) -> Callable[[], npt.NDArray[np.int64]]:
    return lambda: Nearness(vectors, query, None).best(DEPTH).rows


def exactly(vectors: StoredVectors, query: Floats) -> Callable[[], npt.NDArray[np.int64]]:
    rows = np.arange(len(vectors.exact))
    return lambda: best(Ranked(rows, (vectors.exact @ query.T)[:, 0]), DEPTH).rows


def timed(scan: Callable[[], npt.NDArray[np.int64]]) -> tuple[npt.NDArray[np.int64], float]:
    began = time.perf_counter()
    return scan(), time.perf_counter() - began


if __name__ == "__main__":
    main()
