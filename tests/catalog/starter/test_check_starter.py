from __future__ import annotations

import csv
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standards_mcp.catalog.starter import starter_records

SCRIPT = Path(__file__).parents[3] / "scripts" / "check_starter.py"
CODE = "CCSS.Math.Content.3.NF.A.1"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def facts() -> dict[str, str]:
    record = next(each for each in starter_records() if each.statement_notation == CODE)
    return {
        "notation": CODE,
        "official_guid": record.id,
        "grades": "03",
        "parent": CODE.rpartition(".")[0],
    }


def written(path: Path, *rows: dict[str, str]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0].keys())
        table.writeheader()
        table.writerows(rows)
    return str(path)


def test_the_starter_set_passes_its_checks(facts: dict[str, str], tmp_path: Path):
    done = check("--codes", written(tmp_path / "codes.csv", facts))
    assert (done.returncode, done.stdout) == (0, "1748 records, 0 problems\n")


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
        "1748 records, 4 problems",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "fractions " * 12,
        "Lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor.",
        "Pursuant to multidimensional operationalization, learners metacognitively instantiate it.",
        "and so the cat sat on the mat with a hat " * 6,
        "12 + 30 = 42",
    ],
)
def test_a_text_that_nobody_can_read_is_no_text(text: str):
    script: dict[str, Any] = runpy.run_path(str(SCRIPT))
    record = starter_records()[0]
    problems = script["readability_problems"]
    assert not list(problems([record]))
    assert list(problems([record.model_copy(update={"description": text})]))
