"""The starter set: complete, consistent, in our own words, and embedded as it stands."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from standards_mcp.catalog.embedding.minilm import MiniLmEncoder
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.starter import starter_records, starter_seed
from standards_mcp.catalog.starter.codes import place


@pytest.fixture(scope="module")
def records() -> list[StandardRecord]:
    return starter_records()


def find(records: list[StandardRecord], code: str) -> StandardRecord:
    (found,) = [record for record in records if record.statement_notation == code]
    return found


def test_every_common_core_standard_is_there_once(records: list[StandardRecord]):
    subjects = Counter(record.subject for record in records)
    assert subjects == {"Mathematics": 729, "English Language Arts": 1019}
    for name in ("id", "statement_notation", "description"):
        values = [getattr(record, name) for record in records]
        assert len(set(values)) == len(values)


def test_texts_are_paraphrases_of_12_to_60_words_with_a_link(records: list[StandardRecord]):
    for record in records:
        assert 12 <= len(record.description.split()) <= 60, record.statement_notation
        assert record.text_status == "paraphrase"
        assert record.source_url.startswith("https://www.thecorestandards.org/")


def test_the_tree_agrees_with_itself(records: list[StandardRecord]):
    by_id = {record.id: record for record in records}
    for record in records:
        assert record.is_leaf == (not record.child_ids)
        assert record.is_root == (record.parent_id is None) == (not record.ancestor_ids)
        assert record.depth == len(record.ancestor_ids)
        assert record.content.count("\n") == record.depth
        if record.parent_id:
            parent = by_id[record.parent_id]
            assert record.id in parent.child_ids
            assert record.sibling_count == len(parent.child_ids) - 1
            assert record.ancestor_ids == (*parent.ancestor_ids, parent.id)


@pytest.mark.parametrize(
    ("code", "label", "grades", "title", "short", "page"),
    [
        (
            "CCSS.Math.Content.3.NF.A.2a",
            "Component",
            ("03",),
            "Common Core Mathematics: Grade 3",
            ("3.NF.A.2a", "3.NF.2.a"),
            "Math/Content/3/NF/A/2/a/",
        ),
        (
            "CCSS.Math.Content.K.CC",
            "Domain",
            ("K",),
            "Common Core Mathematics: Kindergarten",
            ("K.CC",),
            "Math/Content/K/CC/",
        ),
        (
            "CCSS.Math.Content.HSF-LE.A",
            "Cluster",
            ("09", "10", "11", "12"),
            "Common Core Mathematics: High School, Functions",
            ("HSF-LE.A",),
            "Math/Content/HSF/LE/",
        ),
        (
            "CCSS.ELA-Literacy.L.9-10.1a",
            "Component",
            ("09", "10"),
            "Common Core English Language Arts: Grades 9-10",
            ("L.9-10.1.a",),
            "ELA-Literacy/L/9-10/1/a/",
        ),
        (
            "CCSS.ELA-Literacy.RH.6-8.1",
            "Standard",
            ("06", "07", "08"),
            "Common Core English Language Arts: Literacy in History/Social Studies, Grades 6-8",
            ("RH.6-8.1",),
            "ELA-Literacy/RH/6-8/1/",
        ),
    ],
)
def test_a_code_says_where_it_stands(
    records: list[StandardRecord],
    code: str,
    label: str,
    grades: tuple[str, ...],
    title: str,
    short: tuple[str, ...],
    page: str,
):
    record = find(records, code)
    assert record.statement_label == label
    assert record.education_levels == grades
    assert record.standard_set_title == title
    assert record.alt_statement_notations == short
    assert record.source_url == f"https://www.thecorestandards.org/{page}"


def test_practices_and_anchors_are_for_all_grades(records: list[StandardRecord]):
    for code in ("CCSS.Math.Practice.MP1", "CCSS.ELA-Literacy.CCRA.R.1"):
        assert len(find(records, code).education_levels) == 13


def test_a_set_has_one_title(records: list[StandardRecord]):
    titles = {(record.standard_set_id, record.standard_set_title) for record in records}
    assert len(titles) == len({record.standard_set_id for record in records})


def test_what_is_no_common_core_code_is_refused():
    with pytest.raises(ValueError, match="is not a Common Core code"):
        place("MA.5.NSO.2.5")


def test_the_vectors_are_those_of_the_texts(records: list[StandardRecord]):
    vectors = starter_seed().vectors
    assert vectors.shape == (len(records), 384)
    sample = range(0, len(records), 97)
    expected = MiniLmEncoder().encode([records[index].description for index in sample])
    cosines = np.sum(expected * vectors[list(sample)].astype(np.float32), axis=1)
    assert cosines.min() > 0.999
