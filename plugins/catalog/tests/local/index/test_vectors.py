"""The eight-bit scan finds the rows that an exact product finds, with their exact scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog.local.index.lexical import Ranked
from standards_mcp_catalog.local.index.vectors import (
    Floats,
    Nearness,
    StoredVectors,
    best,
    in_eight_bits,
    write_vectors,
)
from standards_mcp_catalog.starter import starter_vectors
from standards_mcp_encoders.minilm import normalised

Mask = npt.NDArray[np.bool_]

ROWS, DIMENSIONS = 5000, 64
RANDOM = np.random.default_rng(1)
VECTORS = normalised(RANDOM.standard_normal((ROWS, DIMENSIONS)))
QUERIES = normalised(RANDOM.standard_normal((3, DIMENSIONS)))
FIRST_HALF = np.arange(ROWS) < ROWS // 2
EVERY_THIRD = np.arange(ROWS) % 3 == 0


def stored(
    vectors: Floats, phrases: Floats | None = None, of: list[int] | None = None
) -> StoredVectors:
    """Return *vectors*, with an equal share of the *phrases* for each row in *of*."""
    wordings = np.full(len(vectors), -1, np.int32)
    lines = np.full((0, 2), -1, np.int32)
    if phrases is not None and of is not None:
        wordings[of] = np.arange(len(of))
        lines = np.arange(len(phrases), dtype=np.int32).reshape(len(of), -1) + len(vectors)
        vectors = np.vstack([vectors, phrases])
    return StoredVectors(vectors, *in_eight_bits(vectors), wordings, lines)


def assert_exact(vectors: Floats, queries: Floats, mask: Mask | None, depth: int) -> None:
    rows = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    expected = (vectors[rows] @ queries.T).max(axis=1)
    found = Nearness(stored(vectors), queries, mask).best(depth)
    np.testing.assert_allclose(found.scores, np.sort(expected)[::-1][:depth], atol=1e-6)
    np.testing.assert_allclose(found.scores, expected[np.searchsorted(rows, found.rows)], atol=1e-6)
    assert len(set(found.rows.tolist())) == min(depth, rows.size)


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(None, id="all rows"),
        pytest.param(FIRST_HALF, id="rows that lie together"),
        pytest.param(EVERY_THIRD, id="rows that are scattered"),
        pytest.param(FIRST_HALF | EVERY_THIRD, id="rows of both kinds"),
        pytest.param(np.arange(ROWS) == ROWS - 1, id="one row"),
        pytest.param(np.zeros(ROWS, np.bool_), id="no row"),
    ],
)
@pytest.mark.parametrize("queries", [QUERIES[:1], QUERIES])
def test_the_nearest_rows_are_those_of_an_exact_product(mask: Mask | None, queries: Floats):
    assert_exact(VECTORS, queries, mask, 100)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 2000),
    passages=st.integers(1, 4),
    share=st.floats(0, 1),
    depth=st.integers(1, 100),
    spread=st.floats(0.05, 20),
)
def test_random_vectors_under_random_filters_are_ranked_as_by_an_exact_product(
    seed: int, rows: int, passages: int, share: float, depth: int, spread: float
):
    random = np.random.default_rng(seed)
    # One number of a vector may be far greater than the others, and vectors may be shorter than 1.
    vectors = random.standard_normal((rows, DIMENSIONS))
    vectors[:, 0] *= spread
    lengths = random.uniform(0.5, 1, (rows, 1)).astype(np.float32)
    queries = normalised(random.standard_normal((passages, DIMENSIONS)))
    assert_exact(normalised(vectors) * lengths, queries, random.random(rows) <= share, depth)


@settings(max_examples=10)
@given(rows=st.lists(st.integers(0, 2419), min_size=1, max_size=4), grades=st.integers(1, 9))
def test_real_vectors_are_ranked_as_by_an_exact_product(rows: list[int], grades: int):
    vectors = normalised(starter_vectors())
    queries = normalised(vectors[rows] + vectors[[row // 2 for row in rows]])
    assert_exact(vectors, queries, np.arange(len(vectors)) % grades == 0, 100)


def test_the_two_nearest_phrases_bring_a_row_nearer():
    phrases = np.vstack([QUERIES[:1], VECTORS[7:8], QUERIES[:1]])
    found = Nearness(stored(VECTORS[:20], phrases, of=[3]), QUERIES[:1], None)
    own = VECTORS[3] @ QUERIES[0]
    np.testing.assert_allclose(found.exact(np.array([3])), own + 0.3 * (1.05 - own), atol=1e-6)
    assert found.best(1).rows.tolist() == [3]
    np.testing.assert_allclose(
        found.exact(np.array([2, 4])), VECTORS[[2, 4]] @ QUERIES[0], atol=1e-6
    )


def test_rows_share_phrases_and_a_filter_leaves_the_others_out():
    phrases = np.vstack([QUERIES[:1]] * 2 + [QUERIES[1:2]] * 2)
    vectors = stored(VECTORS[:20], phrases, of=[3, 5])
    vectors.wordings[9] = vectors.wordings[3]
    assert set(Nearness(vectors, QUERIES[:1], None).best(2).rows.tolist()) == {3, 9}
    mask = np.arange(20) != 3
    assert Nearness(vectors, QUERIES[:1], mask).best(1).rows.tolist() == [9]
    assert Nearness(vectors, QUERIES[:2], mask).best(2).rows.tolist() != [3]


def test_the_nearest_phrase_counts_only_if_it_is_nearer_than_the_row():
    phrases = np.vstack([VECTORS[7:8], QUERIES[:1], VECTORS[8:10]])
    near = Nearness(stored(VECTORS[:20], phrases, of=[3, 5]), QUERIES[:1], None)
    assert (near.nearest_phrase(3), near.nearest_phrase(4)) == (1, None)
    far = Nearness(stored(VECTORS[:20], phrases, of=[3, 5]), VECTORS[5:6], None)
    assert far.nearest_phrase(5) is None


def test_vectors_are_read_as_they_were_written(tmp_path: Path):
    wordings, lines = np.array([-1, 0], np.int32), np.array([[2, 3, -1]], np.int32)
    parts = [VECTORS[:1], VECTORS[1:2], VECTORS[2:4]]
    write_vectors(tmp_path, parts, (4, DIMENSIONS), wordings, lines)
    read = StoredVectors.read(lambda name, *_: np.load(tmp_path / name), 2, DIMENSIONS)
    np.testing.assert_array_equal(read.exact, VECTORS[:4])
    rough = read.rough * read.scales[:, None]
    np.testing.assert_allclose(rough, VECTORS[:4], atol=np.abs(VECTORS[:4]).max() / 127 / 2 + 1e-6)
    assert read.wordings.tolist() == [-1, 0]
    assert read.phrases.tolist() == [[2, 3, -1]]


def test_the_best_come_first_and_of_equals_the_lower_row():
    ranked = Ranked(np.array([3, 5, 8, 9]), np.array([0.5, 0.9, 0.5, 0.5], dtype=np.float32))
    assert best(ranked, 2).rows.tolist() == [5, 3]
    assert best(ranked, 3).rows.tolist() == [5, 3, 8]


def test_fewer_rows_than_asked_for_are_all_returned():
    ranked = Ranked(np.array([3, 5]), np.array([0.5, 0.9], dtype=np.float32))
    assert best(ranked, 100).rows.tolist() == [5, 3]
