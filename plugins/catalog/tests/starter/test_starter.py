"""The starter set: complete, consistent, in our own words, and embedded as it stands."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from standards_mcp_catalog.local.index.vectors import towards_standards
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.starter import (
    EDITION,
    edition_of_texts,
    phrase_vectors,
    starter_edition,
    starter_records,
    starter_seed,
    starter_vectors,
    starter_wordings,
)
from standards_mcp_catalog.vocabulary.grades import parse_grades
from standards_mcp_catalog.vocabulary.notation import record_keys
from standards_mcp_encoders.minilm import MiniLmEncoder, Vectors


@pytest.fixture(scope="module")
def records() -> list[StandardRecord]:
    return starter_records()


def find(records: list[StandardRecord], code: str) -> StandardRecord:
    (found,) = [record for record in records if record.statement_notation == code]
    return found


def test_every_standard_is_there_once(records: list[StandardRecord]):
    subjects = Counter(record.subject for record in records)
    assert subjects == {
        "Mathematics": 729,
        "English Language Arts": 1019,
        "Science": 269,
        "Social Studies": 283,
        "Computer Science": 120,
    }
    for name in ("id", "statement_notation", "description"):
        values = [getattr(record, name) for record in records]
        assert len(set(values)) == len(values)


def test_texts_are_paraphrases_of_12_to_60_words_with_a_link(records: list[StandardRecord]):
    sites = {
        "Common Core State Standards": "https://www.thecorestandards.org/",
        "Next Generation Science Standards": "https://www.nextgenscience.org/",
        "C3 Framework (NCSS)": "https://www.socialstudies.org/standards/c3",
        "CSTA": "https://csteachers.org/k12standards/",
    }
    for record in records:
        assert 12 <= len(record.description.split()) <= 60, record.statement_notation
        assert record.text_status == "paraphrase"
        assert record.source_url.startswith(sites[record.jurisdiction_title])


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


K_TO_2, MIDDLE, HIGH = ("K", "01", "02"), ("06", "07", "08"), ("09", "10", "11", "12")
CORE = "www.thecorestandards.org"
PLACES = [
    ("CCSS.Math.Content.3.NF.A.2a", "Component", ("03",), "Common Core Mathematics: Grade 3",
     ("3.NF.A.2a", "3.NF.2.a"), f"{CORE}/Math/Content/3/NF/A/2/a/"),
    ("CCSS.Math.Content.K.CC", "Domain", ("K",), "Common Core Mathematics: Kindergarten",
     ("K.CC",), f"{CORE}/Math/Content/K/CC/"),
    ("CCSS.Math.Content.HSF-LE.A", "Cluster", HIGH,
     "Common Core Mathematics: High School, Functions",
     ("HSF-LE.A",), f"{CORE}/Math/Content/HSF/LE/"),
    ("CCSS.ELA-Literacy.L.9-10.1a", "Component", ("09", "10"),
     "Common Core English Language Arts: Grades 9-10",
     ("L.9-10.1.a",), f"{CORE}/ELA-Literacy/L/9-10/1/a/"),
    ("CCSS.ELA-Literacy.RH.6-8.1", "Standard", MIDDLE,
     "Common Core English Language Arts: Literacy in History/Social Studies, Grades 6-8",
     ("RH.6-8.1",), f"{CORE}/ELA-Literacy/RH/6-8/1/"),
    ("MS-ESS1", "Disciplinary Core Idea", MIDDLE, "NGSS: Middle School",
     (), "www.nextgenscience.org/dci-arrangement/ms-ess1-earths-place-universe"),
    ("K-2-ETS1-3", "Performance Expectation", K_TO_2, "NGSS: Grades K-2",
     (), "www.nextgenscience.org/pe/k-2-ets1-3-engineering-design"),
    ("D2.Eco.14.K-2", "Indicator", K_TO_2, "C3 Framework: Economics, Grades K-2",
     (), "www.socialstudies.org/standards/c3"),
    ("3A-AP-14", "Standard", ("09", "10"), "CSTA Computer Science: Level 3A, Grades 9-10",
     (), "csteachers.org/k12standards/"),
]  # fmt: skip


@pytest.mark.parametrize("facts", PLACES, ids=[code for code, *_ in PLACES])
def test_a_code_says_where_it_stands(records: list[StandardRecord], facts: tuple[object, ...]):
    code, *expected, page = facts
    record = find(records, str(code))
    assert [
        record.statement_label,
        record.education_levels,
        record.standard_set_title,
        record.alt_statement_notations,
    ] == expected
    assert record.source_url == f"https://{page}"


def test_practices_and_anchors_are_for_all_grades(records: list[StandardRecord]):
    for code in ("CCSS.Math.Practice.MP1", "CCSS.ELA-Literacy.CCRA.R.1"):
        assert len(find(records, code).education_levels) == 13


def test_a_set_has_one_title(records: list[StandardRecord]):
    titles = {(record.standard_set_id, record.standard_set_title) for record in records}
    assert len(titles) == len({record.standard_set_id for record in records})


def test_performance_expectations_stand_under_their_core_idea(records: list[StandardRecord]):
    idea = find(records, "4-PS3")
    children = [find(records, f"4-PS3-{number}").id for number in range(1, 5)]
    assert idea.child_ids == tuple(children)
    assert find(records, "4-PS3-2").asn_identifier == "S2454438"


def test_no_two_standards_are_found_by_one_code(records: list[StandardRecord]):
    keys = Counter(key for record in records for key in record_keys(record))
    assert [key for key, count in keys.items() if count > 1] == []


def test_a_code_begins_with_the_code_of_its_parent(records: list[StandardRecord]):
    codes = {record.id: record.statement_notation or "" for record in records}
    for record in records:
        assert codes[record.id].startswith(codes.get(record.parent_id or "", ""))


CODE = re.compile(
    r"CCSS\.Math\.Content\.(?:(?P<math>[K1-8])\.|(?P<high>HS)).*"
    r"|CCSS\.ELA-Literacy\.(?!CCRA)[A-Z]+\.(?P<literacy>K|\d+(?:-\d+)?)\..*"
    r"|(?P<science>K-2|3-5|K|[1-5]|MS|HS)-(?:PS|LS|ESS|ETS)\d.*"
    r"|(?P<computing>1A|1B|2|3A|3B)-(?:CS|NI|DA|AP|IC)-\d\d"
    r"|D[1-4]\..*\.(?P<studies>K-2|3-5|6-8|9-12)"
)
LEVELS = {"1A": "K-2", "1B": "3-5", "2": "6-8", "3A": "9-10", "3B": "11-12"}


def test_a_code_says_the_grades_of_the_set(records: list[StandardRecord]):
    for record in records:
        match = CODE.fullmatch(record.statement_notation or "")
        if match is None:  # for all grades
            assert len(record.education_levels) == 13
            continue
        kind, grades = next(each for each in match.groupdict().items() if each[1])
        expected = parse_grades(LEVELS[grades] if kind == "computing" else grades)
        assert record.education_levels == expected, record.statement_notation


def test_a_page_says_the_code(records: list[StandardRecord]):
    for record in records:
        code, page = record.statement_notation or "", (record.source_url or "").split("/", 3)[3]
        if record.jurisdiction_title == "Common Core State Standards":
            assert re.sub(r"\W", "", page) in re.sub(r"\W", "", code)
        elif record.subject == "Science":
            assert page.partition("/")[2].startswith(f"{code.lower()}-")


def test_the_vectors_are_those_of_the_texts(records: list[StandardRecord]):
    vectors = starter_seed().vectors
    assert vectors.shape == (len(records), 384)
    sample = range(0, len(records), 97)
    expected = MiniLmEncoder().encode([records[index].description for index in sample])
    cosines = np.sum(expected * vectors[list(sample)].astype(np.float32), axis=1)
    # Processors and versions of the runtime round otherwise: a number may become its neighbour.
    assert cosines.min() > 0.995


def test_the_edition_is_that_of_the_texts():
    advice = f"write {edition_of_texts()} into standards_mcp_catalog/starter/{EDITION}"
    assert starter_edition() == edition_of_texts(), advice


def test_every_standard_has_two_to_four_phrases_with_their_vectors():
    wordings = starter_wordings()
    for wording in wordings:
        assert 2 <= len(set(wording.phrases)) == len(wording.phrases) <= 4, wording.notation
    phrases = [phrase for wording in wordings for phrase in wording.phrases]
    vectors = phrase_vectors().astype(np.float32)
    assert vectors.shape == (len(phrases), 384)
    sample = range(0, len(phrases), 211)
    expected = MiniLmEncoder().encode([phrases[index] for index in sample])
    found = vectors[list(sample)]
    cosines = np.sum(expected * found, axis=1) / np.linalg.norm(found, axis=1)
    # Processors and versions of the runtime round otherwise: a number may become its neighbour.
    assert cosines.min() > 0.995


def test_turned_towards_standards_questions_are_nearer_to_theirs(records: list[StandardRecord]):
    path = Path(__file__).parents[4] / "benchmarks" / "alignment" / "questions.csv"
    with path.open(encoding="utf-8", newline="") as file:
        questions = [row for row in csv.DictReader(file) if row["split"] == "dev"]
    places = {record.statement_notation: place for place, record in enumerate(records)}
    rows, own = np.arange(len(questions)), [places[row["code"]] for row in questions]
    queries = MiniLmEncoder().encode([row["question"] for row in questions])
    turned = towards_standards(queries)
    assert np.allclose(np.linalg.norm(turned, axis=1), 1, atol=1e-5)

    def mean_reciprocal_rank(vectors: Vectors) -> float:
        cosines = vectors @ starter_vectors().astype(np.float32).T
        ranks = (cosines >= cosines[rows, own][:, None]).sum(axis=1)
        return float((1 / ranks).mean())

    assert mean_reciprocal_rank(turned) > mean_reciprocal_rank(queries) + 0.01
