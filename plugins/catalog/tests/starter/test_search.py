"""What teachers ask, and what the starter set answers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from standards_mcp_catalog import open_local
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.vocabulary.subjects import match_subjects

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.fixture(scope="module")
def starter(planted: Path) -> Iterator[LocalStore]:
    store = open_local(planted).store
    yield store
    store.close()


def codes(starter: LocalStore, text: str, top: int = 5) -> list[str]:
    """Return the short codes of the best standards for *text* and of those they stand for."""
    return [
        (record.statement_notation or "").rpartition("Content.")[2].rpartition("Literacy.")[2]
        for hit in starter.search(text, top).hits
        for record in (hit.record, *hit.also_in)
    ]


QUESTIONS = [
    ("counting to 100 by ones and tens", "K.CC.A.1"),
    ("measuring things with paper clips laid end to end", "1.MD.A.2"),
    ("odd or even numbers, pairing up counters", "2.OA.C.3"),
    ("counting coins: quarters, dimes, nickels and pennies", "2.MD.C.8"),
    ("put fractions on a number line", "3.NF.A.2"),
    ("find the perimeter of a garden fence", "3.MD.D.8"),
    ("volume of a box by packing unit cubes", "5.MD.C.5a"),
    ("use the Pythagorean theorem to find a missing side", "8.G.B.7"),
    ("solve quadratic equations by factoring or the quadratic formula", "HSA-REI.B.4b"),
    ("sight words that cannot be sounded out, first grade", "RF.1.3g"),
    ("main idea and supporting details of an article, grade 3", "RI.3.2"),
    ("persuasive essay about school uniforms in fourth grade", "W.4.1"),
    ("fifth grade lesson on similes and metaphors in a poem", "RL.5.4"),
    ("students cite textual evidence from a novel in sixth grade", "RL.6.1"),
    ("multimedia presentation with slides and graphs of data", "CCRA.SL.5"),
]


@pytest.mark.parametrize(("question", "code"), QUESTIONS)
def test_the_standard_that_a_teacher_means_is_among_the_first_five(
    starter: LocalStore, question: str, code: str
):
    assert code in codes(starter, question)


@pytest.mark.parametrize("table", ["starter_questions.csv", "starter_questions_unseen.csv"])
def test_questions_of_all_subjects_find_their_standard_among_the_first_five(
    starter: LocalStore, table: str
):
    with (BENCHMARKS / table).open(encoding="utf-8", newline="") as file:
        found = [row["code"] in codes(starter, row["question"]) for row in csv.DictReader(file)]
    assert sum(found) >= 0.85 * len(found)


@pytest.mark.parametrize(
    ("subject", "question", "code"),
    [
        ("science", "rocks and minerals", "MS-ESS2-1"),
        ("social studies", "needs and wants", "D2.Eco.1.K-2"),
        ("computer science", "loops", "1A-AP-10"),
    ],
)
def test_a_subject_is_understood_as_people_write_it(
    starter: LocalStore, subject: str, question: str, code: str
):
    subjects = list(match_subjects(subject, starter.facets().subjects))
    hits = starter.search(question, 5, {"subject": {"$in": subjects}}).hits
    assert code in [hit.record.statement_notation for hit in hits]
    assert {hit.record.subject.lower() for hit in hits} == {subject}


def test_codes_in_a_sentence_come_first(starter: LocalStore):
    assert codes(starter, "What standards cover 4.OA.A.3?")[0] == "4.OA.A.3"
    assert codes(starter, "an activity for RL.3.1 and RL.3.2")[:2] == ["RL.3.1", "RL.3.2"]
    assert codes(starter, "a sentence about XX.99.Z.1 and fractions")


def test_a_word_that_no_standard_has_is_found_by_its_meaning_if_it_has_one(starter: LocalStore):
    for text in ("tessellations", "limericks", "palindromes"):
        assert len(codes(starter, text)) >= 5
    for text in ("???", "\U0001f600\U0001f600", "zzzz qqqq", "asdf"):
        assert codes(starter, text) == []
