"""The commands about records, resumes and the audit log, as users type them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.usefixtures("installed"), pytest.mark.measured]
Run = Callable[..., Any]
RECORDS: dict[str, Any] = {
    "atoms": [
        {"atom_id": "a-1", "claim": "Ran Kafka", "title": "Platform", "verified": True},
        {"atom_id": "a-2", "claim": "Wrote Go"},
    ],
    "opportunities": [{"opportunity_id": "o-1", "company": "Reed Works", "role_title": "Engineer"}],
    "interactions": [{"interaction_id": "i-1", "opportunity_id": "o-1"}],
}


def test_records_are_imported_listed_and_shown(run: Run, tmp_path: Path):
    (tmp_path / "records.json").write_text(json.dumps(RECORDS))
    dry = run("career", "import", "records.json", "--dry-run")
    assert dry.stdout == "2 atoms, 1 opportunities, 1 interactions\n"
    assert run("career", "list", "atoms", status=1).stdout == "There are no atoms.\n"
    told = json.loads(run("career", "import", "records.json", "--json").stdout)
    assert told == {"atoms": 2, "opportunities": 1, "interactions": 1, "errors": []}
    assert run("career", "list", "atoms").stdout == "a-1: Platform\na-2: Wrote Go (not verified)\n"
    assert run("career", "list", "interactions").stdout == "i-1: Draft, o-1\n"
    assert run("career", "list", "opportunities").stdout == "o-1: Engineer, Reed Works\n"
    shown = json.loads(run("career", "show", "atoms", "a-1", "--json").stdout)
    assert (shown["claim"], shown["verified"]) == ("Ran Kafka", True)
    assert "company: Reed Works\n" in run("career", "show", "opportunities", "o-1").stdout
    assert "Atom not found: x" in run("career", "show", "atoms", "x", status=1).stderr
    (tmp_path / "bad.json").write_text('{"atoms": [{"atom_id": "a-3"}]}')
    bad = run("career", "import", "bad.json", status=1)
    assert bad.stdout == "bad.json: atoms[0].claim: claim must not be empty\n"


def test_what_others_wrote_steers_no_terminal_and_needs_no_letters(
    run: Run, run_process: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    company = "Ł\x1b[2J\u202eWorks"
    given = {"opportunities": [{**RECORDS["opportunities"][0], "company": company}]}
    (tmp_path / "records.json").write_text(json.dumps(given))
    run("career", "import", "records.json")
    shown = "o-1: Engineer, Ł\\u001b[2J\\u202eWorks\n"
    assert run("career", "list", "opportunities").stdout == shown
    told = json.loads(run("career", "list", "opportunities", "--json").stdout)
    assert told["opportunities"][0]["company"] == company
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    listed = run_process("career", "list", "opportunities").stdout
    assert listed == shown.replace("Ł", "\\u0141")


def test_a_resume_is_ingested_and_its_trace_verified(run: Run, tmp_path: Path):
    (tmp_path / "resume.md").write_text("##Skills\n- Kafka\n")
    first = json.loads(run("career", "ingest", "resume.md", "--json").stdout)
    assert first["stored"] is True
    assert "already stored" in run("career", "ingest", "resume.md").stdout
    missing = run("career", "ingest", "none.md", status=1)
    assert missing.stderr.endswith(f"Failed to open file: {tmp_path}/none.md\n")
    shown = json.loads(run("career", "show", "resumes", first["resume_id"], "--json").stdout)
    assert shown["markdown"] == "## Skills\n- Kafka\n"
    listed = json.loads(run("career", "list", "resumes", "--json").stdout)
    assert "markdown" not in listed["resumes"][0]

    trace = run("career", "audit", "show", first["trace_id"])
    assert [line.split()[1] for line in trace.stdout.splitlines()] == [
        "IngestStarted",
        "IngestCompleted",
    ]
    assert run("career", "audit", "show", "unknown", status=1).stdout.endswith("no events.\n")
    assert run("career", "audit", "verify").stdout.endswith("3 traces, all valid\n")
    found = json.loads(run("career", "audit", "verify", first["trace_id"], "--json").stdout)
    assert found["traces"][0]["first_invalid_index"] == 2
    assert "Trace not found: x" in run("career", "audit", "verify", "x", status=1).stderr

    (tmp_path / "audit.jsonl").write_text("of an older export")
    run("career", "audit", "export", "audit.jsonl")
    exported = (tmp_path / "audit.jsonl").read_text()
    assert run("career", "audit", "export").stdout == exported
    assert "Kafka" not in exported
    assert run("career", "audit", "verify", "--file", "audit.jsonl").stdout.endswith("all valid\n")
    (tmp_path / "audit.jsonl").write_text(exported.replace("IngestCompleted", "IngestForged"))
    forged = run("career", "audit", "verify", "--file", "audit.jsonl", "--json", status=1)
    assert json.loads(forged.stdout)["traces"][0]["error"] == "event_hash mismatch at index 1"
    (tmp_path / "audit.jsonl").write_text("no json\n")
    damaged = run("career", "audit", "verify", "--file", "audit.jsonl", status=1)
    assert "audit.jsonl: Line 1 is not an event of an export" in damaged.stderr


@pytest.mark.parametrize("folder", ["other", ".hidden"])
def test_the_command_line_reads_the_resume_that_its_user_names(
    run: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, folder: str
):
    place = tmp_path_factory.mktemp("outside") / folder
    place.mkdir()
    (place / "resume.md").write_text("- Baked bread\n")
    assert "claim: Baked bread" in run("career", "draft", place / "resume.md").stdout
    assert ": stored\n" in run("career", "ingest", place / "resume.md").stdout
    atoms = [{"atom_id": "a", "claim": "Baked bread", "verified": True}]
    asked = {"opportunity_id": "o", "company": "c", "role_title": "r"}
    records = {"atoms": atoms, "opportunities": [{**asked, "requirements": [{"text": "Bread"}]}]}
    (tmp_path / "records.json").write_text(json.dumps(records))
    run("career", "import", "records.json")
    tried = json.loads(run("career", "try", place / "resume.md", "--json").stdout)
    assert tried["matches"][0]["match_report"]["matched_atoms"] == ["a"]


def test_an_empty_log_is_not_called_valid_and_an_older_export_does_not_stay(
    run: Run, tmp_path: Path
):
    missing = run("career", "audit", "verify", status=1)
    assert "does not exist. Check plugins.career.db" in missing.stderr
    assert not (tmp_path / "career.db").exists()
    run("career", "migrate")
    assert run("career", "audit", "verify", status=1).stdout == "There are no events.\n"
    (tmp_path / "audit.jsonl").write_text("of an older export")
    run("career", "audit", "export", "audit.jsonl")
    assert (tmp_path / "audit.jsonl").read_text() == ""


def test_a_database_is_migrated_by_name(run: Run):
    assert json.loads(run("career", "migrate", "--to", "4", "--json").stdout) == {
        "from": 0,
        "to": 4,
    }
    assert run("career", "migrate").stdout == "version 4 to 10\n"
    assert "cannot go back" in run("career", "migrate", "--to", "4", status=1).stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("import",), 2, "Missing argument"),
        (("list", "wishes"), 2, "is not one of"),
        (("migrate", "--to", "99"), 2, "1<=x<="),
        (("audit", "verify", "t", "--file", "config.toml"), 2, "not both"),
        (("audit", "verify", "--file", "none"), 2, "does not exist"),
    ],
)
def test_bad_usage_is_told(run: Run, arguments: tuple[str, ...], status: int, said: str):
    assert said in run("career", *arguments, status=status).stderr


def test_without_a_database_nothing_is_imported_or_migrated(run: Run, tmp_path: Path):
    (tmp_path / "config.toml").write_text("[plugins.career]\n")
    (tmp_path / "records.json").write_text(json.dumps(RECORDS))
    for arguments in (("import", "records.json"), ("migrate",)):
        told = run("career", *arguments, status=1)
        assert "--set plugins.career.db=" in told.stderr
    more = ("--set", f"plugins.career.load=[{json.dumps(str(tmp_path / 'records.json'))}]")
    assert run(*more, "career", "list", "atoms").stdout.startswith("a-1: Platform\n")
