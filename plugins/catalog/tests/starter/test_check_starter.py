from __future__ import annotations

import csv
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standards_mcp_catalog.starter import starter_records

SCRIPT = Path(__file__).parents[4] / "scripts" / "check_starter.py"
CODE = "CCSS.Math.Content.3.NF.A.1"
COUNT = len(starter_records())


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def facts() -> dict[str, str]:
    (id_,) = (each.id for each in starter_records() if each.statement_notation == CODE)
    parent = CODE.rpartition(".")[0]
    return {"notation": CODE, "official_guid": id_, "grades": "03", "parent": parent}


def written(path: Path, *rows: dict[str, str]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
    return str(path)


def test_the_starter_set_passes_its_checks(facts: dict[str, str], tmp_path: Path):
    done = check("--codes", written(tmp_path / "codes.csv", facts))
    assert (done.returncode, done.stdout) == (0, f"{COUNT} records, 0 problems\n")


def test_codes_that_are_missing_and_facts_that_differ_are_named(
    facts: dict[str, str], tmp_path: Path
):
    wrong = dict.fromkeys(facts, "x") | {"notation": CODE}
    missing = dict.fromkeys(facts, "") | {"notation": "CCSS.Math.Content.3.XX"}
    done = check("--codes", written(tmp_path / "codes.csv", wrong, missing))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "CCSS.Math.Content.3.XX: missing",
        f"{CODE}: official_guid is {facts['official_guid']}, not x",
        f"{CODE}: grades is 03, not x",
        f"{CODE}: parent is {facts['parent']}, not x",
        f"{COUNT} records, 4 problems",
    ]


def official(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return str(path)


def test_words_of_the_publisher_are_found_in_all_that_is_there_of_it(tmp_path: Path):
    ours = {record.statement_notation: record for record in starter_records()}
    same, other = ours["MS-PS1-1"], ours["MS-PS1-4"]
    record = {
        "_id": same.id,
        "jurisdiction_id": "publisher",
        "statement_notation": "MS-PS1-1",
        "education_levels": ["06", "07", "08"],
        "description": "Words that nobody else has.",
    }
    heading = record | {"_id": "x", "description": other.description}
    elsewhere = heading | {"jurisdiction_id": "somebody else", "description": same.description}
    first = official(tmp_path / "first.jsonl", record | {"education_levels": ["06"]}, elsewhere)
    done = check("--official", first, official(tmp_path / "second.jsonl", heading))
    problems = [line for line in done.stdout.splitlines() if "is not among" not in line]
    assert done.returncode == 1
    assert problems[0] == "MS-PS1-1: education_levels is ('06', '07', '08'), officially ['06']"
    assert problems[1].startswith("MS-PS1-4: official words: ")
    assert len(problems) == 3, "two problems and the summary"


@pytest.mark.parametrize(
    "text",
    [
        "fractions " * 12,
        "Lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor.",
        "and so the cat sat on the mat with a hat " * 6,
        "12 + 30 = 42",
    ],
)
def test_a_text_that_nobody_can_read_is_no_text(text: str):
    problems = runpy.run_path(str(SCRIPT))["readability_problems"]
    record = starter_records()[0]
    assert not list(problems([record]))
    assert list(problems([record.model_copy(update={"description": text})]))
