"""Properties of the pairing of two editions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_alignment.comparison.changes import changes_of
from standards_mcp_alignment.comparison.likeness import Vectors
from standards_mcp_alignment.comparison.pairing import Link, paired
from standards_mcp_alignment.comparison.statements import Statement, plain, statement_of
from standards_mcp_catalog import StandardRecord

WORDS = ("add", "whole", "numbers", "draw", "graphs", "read", "clocks", "name", "shapes", "<i>")


def statement(id_: str, text: str, level: str = "03", code: str = "") -> Statement:
    return statement_of(
        StandardRecord.from_dict(
            {
                "_id": id_,
                "content": f"Depth 0: {text}",
                "description": text,
                "subject": "Mathematics",
                "education_levels": [level],
                "standard_set_id": "S",
                "standard_set_title": "S",
                "jurisdiction_id": "A",
                "jurisdiction_title": "Aland",
                "statement_notation": code or None,
            }
        )
    )


def encode(texts: Sequence[str]) -> Vectors:
    """Return vectors of words, in place of a model."""
    rows = np.array([[word in text.split() for word in WORDS] for text in texts], np.float32)
    rows = rows + np.float32(0.01)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
editions = st.lists(st.tuples(texts, st.sampled_from(("03", "04")), st.sampled_from(("", "1.A"))))


@given(left=editions, right=editions)
def test_every_statement_is_in_exactly_one_change(
    left: list[tuple[str, str, str]], right: list[tuple[str, str, str]]
) -> None:
    one = [statement(f"l{place}", *each) for place, each in enumerate(left)]
    other = [statement(f"r{place}", *each) for place, each in enumerate(right)]
    changes = changes_of(one, other, paired(one, other, [], encode))
    seen = Counter(each.id for change in changes for each in (*change.left, *change.right))
    assert seen == Counter(each.id for each in (*one, *other))
    for change in changes:
        assert min(len(change.left), len(change.right)) <= 1


@given(edition=editions)
def test_an_edition_with_other_ids_is_kept_as_a_whole(edition: list[tuple[str, str, str]]) -> None:
    rows = [each for each in edition if each[0].replace("<i>", "").strip()]
    one = [statement(f"l{place}", *each) for place, each in enumerate(rows)]
    other = [statement(f"r{place}", *each) for place, each in enumerate(rows)]
    changes = changes_of(one, other, paired(one, other, [], encode))
    assert {change.kind for change in changes} <= {"kept"}


def test_a_code_that_means_something_else_now_is_not_kept() -> None:
    one = [statement("l", "add whole numbers", code="3.A.1")]
    other = [statement("r", "read clocks name shapes", code="3.A.1")]
    kinds = [change.kind for change in changes_of(one, other, paired(one, other, [], encode))]
    assert sorted(kinds) == ["gone", "new"]


def test_several_predecessors_that_a_source_states_are_a_merger() -> None:
    one = [statement("l1", "draw graphs"), statement("l2", "read clocks")]
    other = [statement("r", "name shapes")]
    links = [Link("l1", "replacedBy", "r", "D"), Link("l2", "replacedBy", "r", "D")]
    (change,) = changes_of(one, other, paired(one, other, links, encode))
    assert (change.kind, change.basis) == ("merged", "stated: replacedBy (D)")


def test_html_does_not_count() -> None:
    assert plain("<ol><li>Add&nbsp;5 &lt; 7</li></ol>\r\n") == "Add 5 < 7"
