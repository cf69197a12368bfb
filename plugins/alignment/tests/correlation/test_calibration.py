"""The shipped calibration, and the features that it weighs."""

from __future__ import annotations

import itertools

import pytest

from standards_mcp_alignment.correlation.calibration import load_calibration
from standards_mcp_alignment.correlation.features import FEATURES, features_of
from standards_mcp_catalog import SearchHit, StandardRecord
from standards_mcp_encoders.spec import MINILM_NAME


def hit(score: float, text: str) -> SearchHit:
    record = StandardRecord(
        id=text, content=f"Depth 0: Number\nDepth 1: {text}", description=text,
        standard_set_id="s", standard_set_title="S", subject="Math",
        jurisdiction_id="j", jurisdiction_title="J",
    )  # fmt: skip
    return SearchHit(record=record, score=score)


def test_the_calibration_fits_the_features_and_the_built_in_model():
    calibration = load_calibration()
    assert len(calibration.weights) == len(FEATURES)
    assert calibration.model == MINILM_NAME


def test_probabilities_rise_with_the_result_and_stay_within_what_was_measured():
    calibration = load_calibration()
    results, shares = calibration.reliability
    assert list(results) == sorted(results)
    assert list(shares) == sorted(shares)
    features = [
        [lead / 10 if name == "lead" else 0 for name in FEATURES] for lead in range(-60, 60)
    ]
    probabilities = [calibration.probability(each) for each in features]
    assert all(low <= high for low, high in itertools.pairwise(probabilities))
    assert probabilities[0] == pytest.approx(shares[0], abs=1e-3)
    assert probabilities[-1] == pytest.approx(shares[-1], abs=1e-3)
    assert len(set(probabilities)) > 10


def test_a_precision_that_no_held_out_pairs_reach_has_no_least_probability():
    calibration = load_calibration()
    for precision, least in calibration.supported:
        assert calibration.least_probability(precision) == least
        assert 0 < least < 1
    highest = max(precision for precision, _ in calibration.supported)
    assert calibration.least_probability(highest + 0.01) is None


def test_features_compare_a_hit_with_the_others():
    hits = [hit(0.8, "Fold paper strips"), hit(0.4, "Bake cakes")]
    first, second = (
        dict(zip(FEATURES, row, strict=True))
        for row in features_of("Students fold folded paper", hits, is_graded=True)
    )
    assert first["lead"] == pytest.approx(0.4)
    assert second["lead"] == pytest.approx(-0.4)
    assert (first["item_words_in_standard"], second["item_words_in_standard"]) == (1, 0)
    assert first["standard_words_in_item"] == pytest.approx(2 / 3)
    assert (first["rank"], first["grade_is_known"]) == (0, 1)
    assert second["share_of_best_score"] == pytest.approx(0.5)


@pytest.mark.parametrize("hits", [[], [hit(0, "Nothing")]])
def test_few_hits_have_features(hits):
    assert len(features_of("", hits, is_graded=False)) == len(hits)
