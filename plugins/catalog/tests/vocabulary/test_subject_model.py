"""The school subject of a text, from its vector."""

from __future__ import annotations

import pytest

from standards_mcp_catalog.vocabulary.subject_model import subject_probabilities
from standards_mcp_encoders import open_encoder


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("adding fractions with unlike denominators", "mathematics"),
        ("the theme of a short story", "english language arts"),
        ("food webs in a pond", "science"),
        ("how a bill becomes a law", "social studies"),
        ("loops and variables in a program", "computer science"),
        ("Spanish verbs in the past tense", "world languages"),
        ("can you help me with tomorrow?", "none"),
    ],
)
def test_the_most_probable_subject_is_the_one_of_the_text(text: str, subject: str):
    shares = subject_probabilities(open_encoder("minilm").encode([text])[0])
    assert max(shares, key=lambda name: shares[name]) == subject
    assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
