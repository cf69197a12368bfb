"""Databases are brought to the newest version, whatever happens meanwhile."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from sqlalchemy import Engine, event, inspect

from standards_mcp import ApiError, InvalidInputError
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.indexing import Indexing
from standards_mcp_career.primitives import CountingIds, TimeIds, sha256, utc_now
from standards_mcp_career.store import runs
from standards_mcp_career.store.database import Store
from standards_mcp_career.store.migrations import LATEST, Migrated, migrate, open_store, version_of
from standards_mcp_career.store.repositories import (
    all_atoms,
    all_interactions,
    all_opportunities,
    all_resumes,
)
from standards_mcp_career.store.tables import METADATA
from standards_mcp_career.vectors import MemoryVectors, StubEmbedder

Run = Callable[..., Any]
# What a program of the original leaves behind; names and types of columns are its interface.
ORIGINAL = Path(__file__).with_name("original-v4.sql")
KILLED = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import Engine, event
from standards_mcp_career.store.migrations import open_store

calls = []

def die_before_the_version_is_noted(connection, cursor, statement, *rest):
    if statement.startswith("INSERT INTO schema_version"):
        calls.append(1)
        if len(calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

event.listen(Engine, "before_cursor_execute", die_before_the_version_is_noted)
open_store(Path(sys.argv[1]))
"""
RACING = """
import sys
from pathlib import Path
from standards_mcp_career.store.migrations import open_store

print("ready", flush=True)
sys.stdin.readline()
open_store(Path(sys.argv[1])).close()
"""


def versions(store: Store) -> list[int]:
    with store.reading() as connection:
        rows = connection.exec_driver_sql("SELECT version FROM schema_version ORDER BY version")
        return [row[0] for row in rows]


def test_a_new_database_has_a_row_for_each_version_and_alembics_table(store: Store):
    assert versions(store) == list(range(1, LATEST + 1))
    with store.reading() as connection:
        (times,) = connection.exec_driver_sql(
            "SELECT count(*) FROM schema_version WHERE applied_at GLOB '20*-*-*T*:*:*Z'"
        ).one()
        revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    assert (times, revision) == (LATEST, f"{LATEST:04}")
    assert migrate(store) == Migrated(LATEST, LATEST)


def test_the_tables_are_those_that_the_repositories_use(store: Store):
    with store.reading() as connection:
        found = inspect(connection)
        for table in METADATA.sorted_tables:
            names = [column["name"] for column in found.get_columns(table.name)]
            assert sorted(names) == sorted(column.name for column in table.columns)
        assert found.has_table("resume_token_ir")


def test_a_database_can_be_brought_to_a_version_between(db: Path):
    store = Store(db)
    assert migrate(store, 4) == Migrated(0, 4)
    with store.reading() as connection:
        assert not inspect(connection).has_table("decision_records")
    with pytest.raises(InvalidInputError, match="nothing leads back to 3"):
        migrate(store, 3)
    with pytest.raises(InvalidInputError, match="they are 1 to"):
        migrate(store, LATEST + 1)
    assert migrate(store) == Migrated(4, LATEST)
    store.close()


@pytest.mark.parametrize("version", range(1, LATEST + 1))
def test_a_process_that_is_killed_in_the_middle_leaves_a_whole_version(db: Path, version: int):
    command = [sys.executable, "-c", KILLED, str(db), str(version)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    store = Store(db)
    with store.reading() as connection:
        assert version_of(connection) == version - 1
    assert migrate(store) == Migrated(version - 1, LATEST)
    assert versions(store) == list(range(1, LATEST + 1))
    store.close()


def test_four_processes_migrate_one_new_file(db: Path):
    command = [sys.executable, "-c", RACING, str(db)]
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=90)[1] for process in processes]
    assert errors == [""] * 4
    store = Store(db)
    assert versions(store) == list(range(1, LATEST + 1))
    store.close()


def test_a_file_without_a_write_ahead_journal_is_waited_for_while_another_writes(db: Path):
    with closing(sqlite3.connect(db, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE theirs (id INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        end = Timer(0.3, other.execute, ["COMMIT"])
        end.start()
        store = open_store(db)
        end.join()
    assert versions(store) == list(range(1, LATEST + 1))
    store.close()


def test_a_database_of_the_original_keeps_all_that_it_has(db: Path):
    with sqlite3.connect(db) as connection:
        connection.executescript(ORIGINAL.read_text("utf-8"))
    connection.close()
    store = open_store(db)
    assert versions(store) == list(range(1, LATEST + 1))
    with store.reading() as connection:
        assert [atom.atom_id for atom in all_atoms(connection)] == ["a-'1'", "a-2"]
        (opportunity,) = all_opportunities(connection)
        assert [each.text for each in opportunity.requirements] == ["Kafka", "Terraform"]
        (interaction,) = all_interactions(connection)
        assert (interaction.state, interaction.transition_index) == (2, 0)
        (resume,) = all_resumes(connection)
        assert resume.meta is not None
        assert resume.resume_hash == f"sha256:{sha256(resume.markdown)}"
        (run,) = runs.read_all(connection)
        (entry,) = runs.entries(connection, run.run_id)
        assert (run.summary, entry.stale) == ({"indexed": 1}, False)
    audit = AuditLog(store, TimeIds(), utc_now)
    assert audit.verify() == {
        "valid": True,
        "traces": [
            {"trace_id": "trace-0", "valid": True, "first_invalid_index": 3, "error": ""},
            {"trace_id": "trace-1", "valid": True, "first_invalid_index": 1, "error": ""},
        ],
    }
    events = audit.page("trace-0")["events"]
    assert [event["event_type"] for event in events] == ["RunStarted", "Matched", "Broken"]
    assert [event["refs"] for event in events] == [[], ["o-1"], ["no list"]]
    # The original joined texts: a quote broke the JSON.
    assert events[2]["payload"] == {"text": '{"id":"a"b"}'}
    index = Indexing(store, audit, CountingIds(), utc_now, StubEmbedder(), MemoryVectors())
    assert run.run_id == "run-3"
    assert [index.build()["run_id"] for _ in range(2)] == ["run-4", "run-5"]
    store.close()


# Each of these once kept all else out.
ODD = (
    """INSERT INTO audit_events VALUES
    ('e-1', 'odd', 'Odd', '{}', 'now', '["\\ud800"]', 0),
    ('e-2', 'odd', 'Odd', '{}', 'now', '[1]', 1),
    ('e-3', 'odd', 'Odd', x'fffe', 'now', x'fffe', 2),
    ('e-4', 'odd', 'Odd', '', '', replace(hex(zeroblob(5000)), '0', '['), 3)""",
    "UPDATE atoms SET tags_json = '', evidence_refs_json = '[1]'",
    "UPDATE requirements SET tags_json = 'no list'",
    "UPDATE index_runs SET summary_json = 'no object'",
    "UPDATE resumes SET resume_md = x'fffe'",
)


@pytest.mark.usefixtures("installed")
def test_odd_rows_of_the_original_keep_no_database_out_and_stay_as_they_are(db: Path, run: Run):
    with sqlite3.connect(db) as connection:
        connection.executescript(ORIGINAL.read_text("utf-8"))
        for each in ODD:
            connection.execute(each)
    connection.close()
    run("career", "audit", "verify")
    odd = json.loads(run("career", "audit", "show", "odd", "--json").stdout)["events"]
    refs = ['["\\ud800"]', "[1]", "b'\\xff\\xfe'", "[" * 10_000]
    assert [event["refs"] for event in odd] == [[each] for each in refs]
    (first, _) = json.loads(run("career", "list", "atoms", "--json").stdout)["atoms"]
    assert (first["tags"], first["evidence_refs"]) == ([], ["[1]"])
    (last,) = json.loads(run("career", "list", "runs", "--json").stdout)["runs"]
    assert last["summary"] == {"text": "no object"}
    run("career", "match", "o-1", "--strategy", "semantic")
    run("career", "index")


def test_tables_that_the_original_left_without_their_version_are_kept(db: Path):
    with sqlite3.connect(db) as connection:
        connection.executescript(ORIGINAL.read_text("utf-8"))
        connection.execute("DELETE FROM schema_version")
    connection.close()
    store = open_store(db)
    assert versions(store) == list(range(1, LATEST + 1))
    with store.reading() as connection:
        assert len(all_atoms(connection)) == 2
    store.close()


def test_the_migrations_need_no_newer_sqlite_than_the_docs_say(db: Path):
    statements = list[str]()

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    open_store(db).close()
    event.remove(Engine, "before_cursor_execute", note)
    assert "INSERT INTO id_counters" in "".join(statements)
    # SQLite takes HAVING without GROUP BY from 3.39 on.
    assert all("GROUP BY" in each for each in statements if "HAVING" in each)


def test_an_sqlite_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch, db: Path):
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.34.1")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ApiError, match=r"has SQLite 3\.34\.1; .* needs 3\.35 or later"):
        open_store(db)


def test_a_database_of_a_newer_plugin_is_refused(db: Path):
    store = open_store(db)
    with store.writing() as connection:
        newer = "INSERT INTO schema_version VALUES (?, 'now')"
        connection.exec_driver_sql(newer, (LATEST + 1,))
    store.close()
    with pytest.raises(ApiError, match=r"this plugin knows .*: run `.* --upgrade"):
        open_store(db)


@pytest.mark.parametrize("kind", ["folder", "text", "below a file"])
def test_what_is_no_database_is_told_with_its_key(tmp_path: Path, kind: str):
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text(json.dumps({"no": "database"}) * 100)
    with pytest.raises(ApiError, match=r"plugins\.career\.db"):
        open_store(path / "career.db" if kind == "below a file" else path)


def test_a_new_file_is_for_its_user_alone(tmp_path: Path):
    open_store(tmp_path / "new" / "career.db").close()
    assert (tmp_path / "new" / "career.db").stat().st_mode & 0o077 == 0
