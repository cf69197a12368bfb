"""The command `standards-mcp alignment check`, in the program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import run
from support.word import word_document

pytestmark = pytest.mark.usefixtures("starter_catalog", "installed")


@pytest.fixture
def installed(install: Callable[..., Path]) -> None:
    """Let the program find the plugin."""
    source = "from standards_mcp_alignment.plugin import AlignmentPlugin as AlignmentPlugin"
    install("alignment", source, version="0.1.0")


def test_a_lesson_in_a_file_is_checked_and_problems_exit_with_1(tmp_path: Path):
    lesson = tmp_path / "lesson.md"
    lesson.write_text("# Grade 3\n\nStandards: 3.NF.A.1, 3.NF.A.9\n", encoding="utf-8")
    outcome = run("alignment", "check", str(lesson))
    assert outcome.exit_code == 1
    assert "| 3.NF.A.1 = CCSS.Math.Content.3.NF.A.1 | ok |" in outcome.stdout
    assert "| 3.NF.A.9 | unknown |" in outcome.stdout
    as_json = run("alignment", "check", str(lesson), "--json", "--grade", "4")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["counts"] == {"wrong_grade": 1, "unknown": 1}


def test_a_lesson_without_problems_exits_with_0(tmp_path: Path):
    lesson = tmp_path / "lesson.html"
    lesson.write_text("<p>Kindergarten</p><p>It meets <b>K.CC.A</b>.1.</p>", encoding="utf-8")
    outcome = run("alignment", "check", str(lesson))
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert "CCSS.Math.Content.K.CC.A.1 | ok" in outcome.stdout


def test_a_word_document_is_read(tmp_path: Path):
    lesson = tmp_path / "lesson.docx"
    lesson.write_bytes(word_document(lambda word: word.add_paragraph("Standards: RL.4.3")))
    assert "CCSS.ELA-Literacy.RL.4.3 | ok" in run("alignment", "check", str(lesson)).stdout


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("none.md", [], "none.md: it cannot be read"),
        ("lesson.xyz", [], "lesson.xyz: it has none of these suffixes"),
        ("broken.docx", [], "broken.docx: it is"),
        ("lesson.md", ["--grade", "banana"], "'banana' is not a grade"),
        ("empty.md", [], "empty.md: it has no text"),
    ],
)
def test_a_bad_file_or_option_exits_with_2(
    tmp_path: Path, name: str, options: list[str], reason: str
):
    for file in ("lesson.xyz", "lesson.md", "broken.docx"):
        (tmp_path / file).write_text("3.NF.A.1", encoding="utf-8")
    (tmp_path / "empty.md").touch()
    outcome = run("alignment", "check", str(tmp_path / name), *options)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert reason in " ".join(outcome.stderr.split())
