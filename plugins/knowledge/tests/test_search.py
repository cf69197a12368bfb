"""Scores, their order, and the attribution of passages."""

from __future__ import annotations

import pytest

from standards_mcp_knowledge.documents import hits, score_of
from standards_mcp_knowledge.encoders import spec_of
from standards_mcp_knowledge.manifests import DatasetError
from standards_mcp_knowledge.service import loggable


def test_both_metrics_give_the_same_score_for_normalised_vectors():
    assert score_of(0.8, "ip") == 0.8
    assert score_of(0.4, "l2") == 0.8
    assert score_of(1.23456789, "ip") == 1.234568


def test_results_are_ordered_by_score_then_by_row_and_invalid_rows_are_skipped():
    documents = [{"id": str(row)} for row in range(4)]
    found = [(3, 0.5), (1, 0.9), (0, 0.5), (-1, -3.4e38), (7, 1.0), (2, float("nan"))]
    assert [hit["id"] for hit in hits(found, "ip", documents, "set")] == ["1", "0", "3"]


def test_a_document_without_anything_is_still_attributed():
    (hit,) = hits([(2, 1.0)], "ip", [{}, {}, {"content": "x" * 300, "title": None}], "set")
    assert hit == {
        "id": "set-3",
        "score": 1.0,
        "title": "Document 2",
        "path": "set-3",
        "snippet": "x" * 200,
    }
    (hit,) = hits([(0, 1.0)], "ip", [{"path": "a.md", "snippet": "short", "content": "y"}], "set")
    assert (hit["title"], hit["path"], hit["snippet"]) == ("a.md", "a.md", "short")


@pytest.mark.parametrize(
    ("model", "spec"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "minilm"),
        ("all-minilm-l6-v2-INT8", "minilm"),
        ("sentence-transformers:all-MiniLM-L6-v2", "minilm"),
        ("minilm", "minilm"),
        ("fastembed:BAAI/bge-small-en-v1.5", "fastembed:BAAI/bge-small-en-v1.5"),
        ("https://host/v1/embeddings#m", "https://host/v1/embeddings#m"),
        ("ours", "model2vec:x"),
    ],
)
def test_a_model_leads_to_its_encoder(model: str, spec: str):
    assert spec_of(model, {"ours": "model2vec:x"}) == spec


def test_the_settings_count_more_than_the_rule():
    assert spec_of("all-MiniLM-L6-v2", {"all-MiniLM-L6-v2": "model2vec:x"}) == "model2vec:x"


@pytest.mark.parametrize("model", ["bge-large", "none", "x:y"])
def test_a_model_without_an_encoder_names_the_setting(model: str):
    with pytest.raises(DatasetError, match=f"No encoder for model '{model}'. Set plugins.know"):
        spec_of(model, {})


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("two\nlines\x00", "two lines "),
        ("my sk-abc_DEF-123 here", "my *** here"),
        ("pcsk_1234", "***"),
        ("key=hunter2 and more", "key=*** and more"),
        ("0123456789abcdef" * 2, "***"),
        ("w" * 20 + " " + "v" * 20 + " " + "u" * 300, "w" * 20 + " " + "v" * 20 + " ***"),
        ("Wie heißt das? " * 20, ("Wie heißt das? " * 20)[:100]),
    ],
)
def test_a_log_line_has_the_beginning_of_a_query_without_secrets(query: str, said: str):
    assert loggable(query) == said
