"""The vector half of the index scores exactly, however the rows are read."""

import numpy as np
import numpy.typing as npt
import pytest

from standards_mcp_catalog.local.index.lexical import Ranked
from standards_mcp_catalog.local.index.ranking import best, cosines
from standards_mcp_encoders.minilm import normalised

ROWS = 20_000
RANDOM = np.random.default_rng(1)
VECTORS = normalised(RANDOM.standard_normal((ROWS, 16)))
QUERIES = normalised(RANDOM.standard_normal((3, 16)))
FIRST_HALF = np.arange(ROWS) < ROWS // 2
EVERY_THIRD = np.arange(ROWS) % 3 == 0


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
def test_every_selected_row_has_its_greatest_cosine(
    mask: npt.NDArray[np.bool_] | None, queries: npt.NDArray[np.float32]
):
    expected = (VECTORS @ queries.T).max(axis=1)
    rows, scores = cosines(VECTORS, queries, mask)
    assert rows.tolist() == np.flatnonzero(np.ones(ROWS) if mask is None else mask).tolist()
    np.testing.assert_allclose(scores, expected[rows], atol=1e-6)


def test_the_best_come_first_and_of_equals_the_lower_row():
    ranked = Ranked(np.array([3, 5, 8, 9]), np.array([0.5, 0.9, 0.5, 0.5], dtype=np.float32))
    assert best(ranked, 2).rows.tolist() == [5, 3]
    assert best(ranked, 3).rows.tolist() == [5, 3, 8]
    assert best(ranked, 100).rows.tolist() == [5, 3, 8, 9]
