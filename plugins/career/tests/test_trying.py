"""The main job in one command, drafts, and the commands that match and validate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import pytest
from ruamel.yaml import YAML

from standards_mcp_career.drafting import draft_atoms
from standards_mcp_career.primitives import hash64, sha256

pytestmark = [pytest.mark.usefixtures("installed"), pytest.mark.measured]
Run = Callable[..., Any]
RESUME = """\
# Cook

## Kitchen

- Baked bread for two hundred guests a day
* Wrote menus for school canteens
1. Trained four apprentices

```
- not an item
```
"""
POSITION = {
    "opportunity_id": "baker",
    "company": "A canteen",
    "role_title": "Baker",
    "requirements": [{"text": "Bread for guests"}, {"text": "Pastry"}],
}


def test_the_main_job_takes_one_command(run: Run):
    shown = run("career", "try").stdout
    assert shown.startswith("1. backend-developer: 0.")
    assert "missing   Rust parser development" in shown
    assert shown.endswith("The audit log is intact (2 traces).\n")
    told = json.loads(run("career", "try", "--json").stdout)
    scores = [each["match_report"]["overall_score"] for each in told["matches"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 4
    assert told["audit"]["valid"]
    assert told["resume"]["stored"]
    strategies = {each["match_report"]["strategy"] for each in told["matches"]}
    assert strategies == {"hybrid_semantic_v0.3"}


def test_ones_own_resume_is_drafted_checked_imported_and_tried(run: Run, tmp_path: Path):
    (tmp_path / "resume.md").write_text(RESUME)
    without = run("career", "try", "resume.md", status=1)
    assert "career draft resume.md" in without.stderr
    drafted = run("career", "draft", "resume.md").stdout
    baked = f"atom-{hash64('KitchenBaked bread for two hundred guests a day')}"
    assert f"atom_id: {baked}" in drafted
    told = json.loads(run("career", "draft", "resume.md", "--json").stdout)
    assert told["atoms"][0]["atom_id"] == baked
    (tmp_path / "atoms.yaml").write_text(drafted.replace("verified: false", "verified: true"))
    imported = json.loads(run("career", "import", "atoms.yaml", "--json").stdout)
    assert (imported["atoms"], imported["errors"]) == (3, [])
    (tmp_path / "positions.json").write_text(json.dumps({"opportunities": [POSITION]}))
    options = ("resume.md", "--opportunities", "positions.json", "--json")
    (match,) = json.loads(run("career", "try", *options).stdout)["matches"]
    report = match["match_report"]
    assert report["missing_requirements"] == ["Pastry"]
    assert report["matched_atoms"] == [baked]
    (tmp_path / "empty.txt").write_text("No list here.")
    assert "no list items" in run("career", "draft", "empty.txt", status=1).stderr


def test_a_draft_has_an_atom_for_each_list_item_outside_of_code():
    drafted = list(draft_atoms(RESUME))
    assert [each.claim for each in drafted] == [
        "Baked bread for two hundred guests a day",
        "Wrote menus for school canteens",
        "Trained four apprentices",
    ]
    assert {(each.title, each.domain, each.verified) for each in drafted} == {
        ("Kitchen", "kitchen", False)
    }
    assert len(list(draft_atoms("- é\n- é"))) == 1


def test_an_item_goes_on_in_the_lines_below_it():
    text = "- Ran Kafka for a billing\n  System with\n40 million events\n* Next\nSkills\n- Last"
    assert [each.claim for each in draft_atoms(text)] == [
        "Ran Kafka for a billing System with 40 million events",
        "Next",
        "Last",
    ]


def test_lists_of_a_word_document_are_drafted(run: Run, tmp_path: Path):
    word = docx.Document()
    word.add_heading("Kitchen", 1)
    word.add_paragraph("A paragraph")
    word.add_paragraph("Baked bread", style="List Bullet")
    cell = word.add_table(1, 1).cell(0, 0)
    cell.paragraphs[0].text = "Trained apprentices"
    cell.paragraphs[0].style = "List Number"
    word.save(str(tmp_path / "resume.docx"))
    drafted = YAML(typ="safe").load(run("career", "draft", "resume.docx").stdout)["atoms"]
    assert [(each["title"], each["claim"]) for each in drafted] == [
        ("Kitchen", "Baked bread"),
        ("Kitchen", "Trained apprentices"),
    ]


def test_a_draft_is_written_in_utf_8_also_to_a_pipe_that_knows_less(
    run_process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "resume.md").write_text("# Kitchen\n\n- Baked bread in Łódź\n", "utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    assert "claim: Baked bread in Łódź" in run_process("career", "draft", "resume.md").stdout


def test_the_examples_leave_what_is_stored_as_it_is(run: Run, tmp_path: Path):
    atoms = [{"atom_id": "mine", "claim": "Baked bread", "verified": True}]
    (tmp_path / "atoms.json").write_text(json.dumps({"atoms": atoms}))
    kept = ("--set", "plugins.career.vector_backend=lancedb")
    kept += ("--set", f"plugins.career.lancedb_path={tmp_path / 'vectors'}")
    run("career", "import", "atoms.json")
    assert run(*kept, "career", "index").stdout == "run-0: 1 indexed, 0 skipped, 0 stale\n"
    run(*kept, "career", "try")
    assert run(*kept, "career", "index").stdout == "run-1: 0 indexed, 1 skipped, 0 stale\n"
    (tmp_path / "positions.json").write_text(json.dumps({"opportunities": [POSITION]}))
    refused = run("career", "try", "--opportunities", "positions.json", status=2)
    assert "needs your RESUME" in refused.stderr


def test_an_opportunity_is_matched_by_its_id_or_from_a_file(run: Run, tmp_path: Path):
    atoms = [{"atom_id": "a", "claim": "Baked bread for guests", "verified": True}]
    (tmp_path / "all.json").write_text(json.dumps({"atoms": atoms, "opportunities": [POSITION]}))
    run("career", "import", "all.json")
    shown = run("career", "match", "baker").stdout
    assert shown == (
        "baker: 0.50, accepted\n"
        "   met 1.00  Bread for guests  (a: bread, guests)\n"
        "   missing   Pastry\n"
    )
    (tmp_path / "one.yaml").write_text(json.dumps(POSITION))
    for strategy in ("lexical", "hybrid", "semantic"):
        told = run("career", "match", "one.yaml", "--strategy", strategy, "--json").stdout
        assert json.loads(told)["match_report"]["matched_atoms"] == ["a"]
    assert "Opportunity not found: x" in run("career", "match", "x", status=1).stderr
    assert "Opportunity not found" in run("career", "match", "x" * 300, status=1).stderr
    (tmp_path / "bad.json").write_text("[]")
    assert "holds no opportunity" in run("career", "match", "bad.json", status=1).stderr
    decisions = json.loads(run("career", "list", "decisions", "--json").stdout)["decisions"]
    assert len(decisions) == 4
    assert run("career", "index").stdout == "run-2: 2 indexed, 0 skipped, 0 stale\n"
    entries = json.loads(run("career", "show", "runs", "run-2", "--json").stdout)["entries"]
    assert [entry["artifact_id"] for entry in entries] == ["a", "baker"]
    names = {"artifact_type", "artifact_id", "source_hash", "vector_hash", "stale"}
    assert entries[0].keys() == names


def test_a_report_is_validated_and_a_person_may_overrule(run: Run, tmp_path: Path):
    bad = {"requirement_text": "Bread", "matched": True, "best_score": 1}
    report = {"opportunity_id": "o", "overall_score": 1, "requirement_matches": [bad]}
    (tmp_path / "report.json").write_text(json.dumps({"match_report": report}))
    shown = run("career", "validate", "report.json", status=1).stdout
    assert shown.startswith("match-report-o: blocked\n   BLOCK SCHEMA-001: RequirementMatch[0] is")
    said = {
        "rule_id": "SCHEMA-001",
        "operator_id": "reviewer-7",
        "reason": "by hand",
        "payload_hash": sha256("match-report-o"),
    }
    told = run("career", "validate", "report.json", "--override", json.dumps(said), "--json").stdout
    assert json.loads(told)["status"] == "overridden"
    for content, expected in (
        ('{"opportunity_id": "o"}', "overall_score: Field required"),
        ("[1]", "does not contain a match report"),
        ("{", "does not contain a match report"),
    ):
        (tmp_path / "odd.json").write_text(content)
        assert expected in run("career", "validate", "odd.json", status=1).stderr
