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
    ("add and subtract within 20 with fluency, addition facts from memory", "2.OA.B.2"),
    ("measuring things with paper clips laid end to end", "1.MD.A.2"),
    ("telling time to the hour and half hour on a clock", "1.MD.B.3"),
    ("odd or even numbers, pairing up counters", "2.OA.C.3"),
    ("counting coins: quarters, dimes, nickels and pennies", "2.MD.C.8"),
    ("times tables practice, multiplication facts", "3.OA.C.7"),
    ("put fractions on a number line", "3.NF.A.2"),
    ("find the perimeter of a garden fence", "3.MD.D.8"),
    ("which fractions are equivalent, using fraction strips", "4.NF.A.1"),
    ("measuring angles with a protractor", "4.MD.C.6"),
    ("volume of a box by packing unit cubes", "5.MD.C.5a"),
    ("find the mean and median of a data set", "6.SP.B.5c"),
    ("scale drawing of a bedroom floor plan", "7.G.A.1"),
    ("use the Pythagorean theorem to find a missing side", "8.G.B.7"),
    ("solve quadratic equations by factoring or the quadratic formula", "HSA-REI.B.4b"),
    ("shade the region for a system of linear inequalities", "HSA-REI.D.12"),
    ("retell a story with beginning, middle and end in first grade", "RL.1.2"),
    ("sight words that cannot be sounded out, first grade", "RF.1.3g"),
    ("first graders sort words into groups such as animals and clothes", "L.1.5a"),
    ("main idea and supporting details of an article, grade 3", "RI.3.2"),
    ("persuasive essay about school uniforms in fourth grade", "W.4.1"),
    ("fifth grade lesson on similes and metaphors in a poem", "RL.5.4"),
    ("context clues for unknown words, fourth grade", "L.4.4a"),
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


@pytest.mark.parametrize("text", ["???", "\U0001f600\U0001f600", "zzzz qqqq", "asdf", "...", "!?"])
def test_a_text_without_a_known_word_finds_nothing(starter: LocalStore, text: str):
    assert codes(starter, text) == []


@pytest.mark.parametrize("text", ["tessellations", "limericks", "palindromes"])
def test_a_word_that_no_standard_has_is_found_by_its_meaning(starter: LocalStore, text: str):
    assert len(codes(starter, text)) >= 5
