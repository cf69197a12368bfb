"""The open benchmark in `benchmarks/alignment/`: its questions, its neighbours and its scorer."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.starter import starter_records
from standards_mcp_catalog.vocabulary.notation import canonical_key, codes_in

BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "alignment"
RUN_LENGTH = 8
Row = dict[str, str]


def rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def program(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def word_runs(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return (tuple(words[at : at + RUN_LENGTH]) for at in range(len(words) - RUN_LENGTH + 1))


@pytest.fixture(scope="module")
def questions() -> list[Row]:
    return rows(BENCHMARK / "questions.csv")


@pytest.fixture(scope="module")
def records() -> dict[str, StandardRecord]:
    return {record.statement_notation or "": record for record in starter_records()}


class TestQuestions:
    def test_each_has_an_id_of_its_own_and_is_asked_once(self, questions: list[Row]):
        for column in ("id", "question"):
            assert max(Counter(row[column] for row in questions).values()) == 1

    def test_each_names_a_standard_of_the_starter_set_with_its_subject_and_grade(
        self, questions: list[Row], records: dict[str, StandardRecord]
    ):
        for row in questions:
            record = records[row["code"]]
            grades = [level.lstrip("0") for level in record.education_levels]
            assert row["subject"] == record.subject
            assert row["grade"] == "-".join(dict.fromkeys((grades[0], grades[-1])))

    def test_none_has_a_code(self, questions: list[Row], records: dict[str, StandardRecord]):
        keys = {canonical_key(code) for code in records}
        named = [code for row in questions for code in codes_in(row["question"])]
        assert not [code for code in named if canonical_key(code) in keys]

    def test_none_repeats_the_text_of_a_standard(
        self, questions: list[Row], records: dict[str, StandardRecord]
    ):
        known = {run for record in records.values() for run in word_runs(record.description)}
        assert not [row for row in questions if known & set(word_runs(row["question"]))]

    def test_they_have_a_natural_length(self, questions: list[Row]):
        assert all(5 <= len(row["question"].split()) <= 25 for row in questions)

    def test_they_cover_all_subjects_and_grades(
        self, questions: list[Row], records: dict[str, StandardRecord]
    ):
        subjects = Counter(row["subject"] for row in questions if row["split"] == "test")
        levels = {level for row in questions for level in records[row["code"]].education_levels}
        assert set(subjects) == {record.subject for record in records.values()}
        assert min(subjects.values()) >= 50
        assert levels == {"K", *(f"{grade:02}" for grade in range(1, 13))}

    def test_no_standard_is_in_both_splits(self, questions: list[Row]):
        splits = {row["split"]: set[str]() for row in questions}
        for row in questions:
            splits[row["split"]].add(row["code"])
        assert set(splits) == {"dev", "test"}
        assert not splits["dev"] & splits["test"]


@pytest.mark.processes
class TestNeighbours:
    def test_corpus_and_hard_negatives_are_derived_from_the_starter_set(
        self, tmp_path: Path, questions: list[Row], records: dict[str, StandardRecord]
    ):
        result = program("corpus.py", tmp_path)
        assert result.returncode == 0, result.stderr
        corpus = {row["code"]: row for row in rows(tmp_path / "corpus.csv")}
        assert list(corpus) == list(records)
        negatives = rows(tmp_path / "negatives.csv")
        assert {row["kind"] for row in negatives} == {"sibling", "neighbouring grade"}
        codes = {row["id"]: row["code"] for row in questions}
        for row in negatives:
            right, wrong = corpus[codes[row["id"]]], corpus[row["code"]]
            assert right["domain"] == wrong["domain"]
            assert (right["grade"] == wrong["grade"]) == (row["kind"] == "sibling")
            if row["kind"] == "sibling":
                assert right["parent"] == wrong["parent"]


QUESTIONS = """id,question,code,subject,grade,split
a,one,CCSS.Math.Content.3.NF.A.1,Mathematics,3,test
b,two,CCSS.Math.Content.3.NF.A.1,Mathematics,3,test
c,three,CCSS.Math.Content.3.NF.A.2,Mathematics,3,test
d,four,MS-PS1-2,Science,6-8,test
e,five,D2.Eco.1.K-2,Social Studies,K-2,test
"""
# First; second, after a sibling; third, after its own part and the domain of the next grade; sixth,
# after other sciences; nothing.
RUN = """id,rank,code
a,1,CCSS.Math.Content.3.NF.A.1
b,2,CCSS.Math.Content.3.NF.A.1
b,1,CCSS.Math.Content.3.NF.A.3
c,1,CCSS.Math.Content.3.NF.A.2a
c,2,CCSS.Math.Content.4.NF.A.1
c,3,CCSS.Math.Content.3.NF.A.2
d,1,HS-PS1-1
d,2,MS-PS2-1
d,3,MS-PS2-2
d,4,MS-PS2-3
d,5,MS-PS2-4
d,6,MS-PS1-2
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return write(tmp_path / "questions.csv", QUESTIONS)


@pytest.mark.processes
class TestScorer:
    def test_it_gives_the_figures_computed_by_hand(self, tmp_path: Path, example: Path):
        run = write(tmp_path / "run.csv", RUN)
        result = program("score.py", run, "--questions", example)
        assert result.returncode == 0, result.stderr
        # nDCG: 1 / log2(rank + 1), so 1, .6309 and .5; for rank 6 .3562
        assert "| Mathematics | 3 | 0.333 | 1.000 | 0.710 | 0.611 |" in result.stdout
        assert "| Science | 1 | 0.000 | 0.000 | 0.356 | 0.167 |" in result.stdout
        assert "| all | 5 | 0.200 | 0.600 | 0.497 | 0.400 |" in result.stdout
        kinds = ("right", "sibling", "heading or part", "neighbouring grade", "nothing")
        for kind in kinds:
            assert f"| {kind} | 1 | 20.0% |" in result.stdout
        for kind in ("same domain", "elsewhere"):
            assert f"| {kind} | 0 | 0.0% |" in result.stdout

    def test_it_compares_two_runs_question_by_question(self, tmp_path: Path, example: Path):
        run = write(tmp_path / "run.csv", RUN)
        other = write(tmp_path / "other.csv", "".join(RUN.splitlines(keepends=True)[:2]))
        result = program("score.py", run, other, "--questions", example)
        assert "| recall@1 | +0.000 | [+0.000, +0.000] |" in result.stdout
        # One more right answer in five at rank 2, and one at rank 3.
        row = next(line for line in result.stdout.splitlines() if line.startswith("| recall@5 | +"))
        low, high = map(float, re.findall(r"[+-][\d.]+", row)[1:])
        assert row.startswith("| recall@5 | +0.400 |")
        assert low < 0.4 < high
        again = program("score.py", run, other, "--questions", example)
        assert again.stdout == result.stdout

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("z,1,MS-PS1-2", "unknown id 'z'"),
            ("a,first,MS-PS1-2", "rank 'first' is not a whole number from 1"),
            ("a,1,MS-PS9-9", "unknown code 'MS-PS9-9'; corpus.csv has the codes"),
        ],
    )
    def test_it_says_which_line_of_a_run_does_not_fit(
        self, tmp_path: Path, example: Path, line: str, message: str
    ):
        run = write(tmp_path / "run.csv", f"id,rank,code\n{line}\n")
        result = program("score.py", run, "--questions", example)
        assert result.returncode == 1
        assert "line 2" in result.stderr
        assert message in result.stderr
