"""`career copy` takes everything from SQLite to PostgreSQL, or nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import standards_mcp_career
from standards_mcp import InvalidInputError
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.copying import _TABLES, copy_database
from standards_mcp_career.records import Atom
from standards_mcp_career.schema import open_store
from standards_mcp_career.tables import scan, upsert

Run = Callable[..., Any]
RECORDS = Path(standards_mcp_career.__file__).parent / "examples" / "records.yaml"
VARIABLE = "STANDARDS_MCP_PLUGINS__CAREER__POSTGRES"
KINDS = ("atoms", "opportunities", "interactions", "resumes", "runs", "decisions")


def dump(run: Run) -> dict[str, Any]:
    lists = {kind: json.loads(run("career", "list", kind, "--json").stdout) for kind in KINDS}
    return {**lists, "audit": run("career", "audit", "export").stdout}


@pytest.mark.usefixtures("installed", "postgres_address")
def test_a_used_database_moves_with_all_that_it_has(
    run: Run,
    run_process: Run,
    tmp_path: Path,
    postgres_server: object,
    monkeypatch: pytest.MonkeyPatch,
):
    (tmp_path / "resume.md").write_text("- Ran Kafka\n")
    interactions = [{"interaction_id": "i-1", "opportunity_id": "streaming-engineer"}]
    (tmp_path / "more.json").write_text(json.dumps({"interactions": interactions}))
    run("career", "import", str(RECORDS), "more.json")
    run("career", "ingest", "resume.md")
    run("career", "match", "streaming-engineer", "--strategy", "semantic")
    before = dump(run)
    with closing(sqlite3.connect(tmp_path / "career.db")) as database, database:
        database.execute("UPDATE interactions SET state = 1, transition_index = 1")
        database.execute("INSERT INTO interaction_receipts VALUES ('i-1', 'k', 'Prepare', 1, 1)")
        tables = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        assert {name for (name,) in tables} == {*_TABLES, "schema_version", "alembic_version"}
    before["interactions"]["interactions"][0] |= {"state": 1, "transition_index": 1}

    refused = run("career", "copy", "career.db", status=1).stderr
    assert f"Set plugins.career.postgres, in the variable {VARIABLE}" in refused
    monkeypatch.setenv(VARIABLE, postgres_server.url("career"))
    assert "set db or postgres, not both" in run("career", "list", "atoms", status=1).stderr
    (tmp_path / "config.toml").write_text("[plugins.career]\n")
    assert "none.db does not exist" in run("career", "copy", "none.db", status=1).stderr
    copied = run_process("career", "copy", "career.db", "--json")
    assert "hush" not in copied.stdout + copied.stderr
    rows = json.loads(copied.stdout)["rows"]
    assert (list(rows), rows["interaction_receipts"]) == ([*_TABLES], 1)
    assert dump(run) == before
    assert run("career", "audit", "verify").stdout.endswith("all valid\n")
    again = run("career", "copy", "career.db", status=1).stderr
    assert "plugins.career.postgres has records (atoms)" in again

    # Numbers go on where they were.
    run("career", "match", "streaming-engineer", "--strategy", "semantic")
    after = dump(run)
    assert [each["run_id"] for each in after["runs"]["runs"]] == ["run-0", "run-1"]
    assert after["decisions"]["decisions"][:1] == before["decisions"]["decisions"]
    assert len(after["decisions"]["decisions"]) == 2


def test_a_file_that_cannot_be_taken_over_leaves_an_empty_database(
    db: Path, postgres_address: PostgresAddress
):
    with closing(open_store(db)) as store, store.writing() as connection:
        upsert(connection, [Atom("a", claim="c"), Atom("b", claim="nul\0in it")])
    with pytest.raises(InvalidInputError, match="null character"):
        copy_database(db, postgres_address)
    with closing(open_store(postgres_address)) as store, store.writing() as connection:
        assert list(scan(connection, Atom)) == []


def test_bytes_of_other_programs_are_copied_as_they_are_read(
    db: Path, postgres_address: PostgresAddress
):
    original = Path(__file__).parent / "store" / "original-v4.sql"
    with closing(sqlite3.connect(db)) as database:
        database.executescript(original.read_text("utf-8"))
        with database:
            database.execute("UPDATE audit_events SET payload = x'fffe' WHERE event_id = 'evt-2'")
    counts = copy_database(db, postgres_address)
    assert (counts["atoms"], counts["audit_events"]) == (2, 4)
    with closing(open_store(db)) as old, closing(open_store(postgres_address)) as new:
        for trace_id in ("trace-0", "trace-1"):
            assert AuditLog(new).page(trace_id) == AuditLog(old).page(trace_id)
        assert AuditLog(new).verify() == AuditLog(old).verify()
        assert AuditLog(new).verify()["valid"]
