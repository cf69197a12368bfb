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

from standards_mcp import ApiError, InvalidInputError
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.indexing import Indexing
from standards_mcp_career.primitives import sha256
from standards_mcp_career.records import (
    Atom,
    Entry,
    Interaction,
    Opportunity,
    Resume,
    Run,
)
from standards_mcp_career.schema import (
    LATEST,
    VERSIONS,
    migrate,
    open_store,
    version_of,
)
from standards_mcp_career.sqlite import SqliteStore
from standards_mcp_career.tables import scan, upsert
from standards_mcp_career.vectors import STUB_EMBEDDER, MemoryVectors

RunCommand = Callable[..., Any]
# What a program of the original leaves behind; names and types of columns are its interface.
ORIGINAL = Path(__file__).with_name("original-v4.sql")
KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from standards_mcp_career.schema import open_store

connect, calls = sqlite3.connect, []

def die_before_the_version_is_noted(statement):
    if statement.startswith("INSERT INTO schema_version"):
        calls.append(1)
        if len(calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

def traced(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.set_trace_callback(die_before_the_version_is_noted)
    return connection

sqlite3.connect = traced
open_store(Path(sys.argv[1]))
"""
RACING = """
import sys
from pathlib import Path
from standards_mcp_career.schema import open_store

print("ready", flush=True)
sys.stdin.readline()
open_store(Path(sys.argv[1])).close()
"""


def versions(store: Store) -> list[int]:
    with store.reading() as connection:
        rows = connection.execute("SELECT version FROM schema_version ORDER BY version")
        return [version for (version,) in rows]


@pytest.fixture
def original(db: Path) -> Path:
    """Return a database of the original program."""
    with closing(sqlite3.connect(db)) as connection:
        connection.executescript(ORIGINAL.read_text("utf-8"))
    return db


def test_a_new_database_is_of_the_newest_version(store: Store):
    assert versions(store) == [number for number in VERSIONS if number >= store.first_version]
    assert migrate(store) == (LATEST, LATEST)


def test_a_new_file_has_a_row_for_each_version_and_alembics_table(db: Path):
    store = open_store(db)
    with store.reading() as connection:
        (times,) = connection.execute(
            "SELECT count(*) FROM schema_version WHERE applied_at GLOB '20*-*-*T*:*:*Z'"
        ).fetchone()
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        assert "resume_token_ir" in {name for (name,) in tables}
    assert (times, revision) == (len(VERSIONS), f"{LATEST:04}")
    store.close()


def test_a_database_can_be_brought_to_a_version_between(db: Path):
    with closing(SqliteStore(db)) as store:
        assert migrate(store, 4) == (0, 4)
        with store.reading() as connection:
            assert not connection.execute("PRAGMA table_info(decision_records)").fetchall()
        with pytest.raises(InvalidInputError, match="cannot go back to 3"):
            migrate(store, 3)
        with pytest.raises(InvalidInputError, match="the versions are 1, 2, 3, 4, 10"):
            migrate(store, 7)
        assert migrate(store) == (4, LATEST)


@pytest.mark.parametrize("number", range(len(VERSIONS)))
def test_a_process_that_is_killed_in_the_middle_leaves_a_whole_version(db: Path, number: int):
    command = [sys.executable, "-c", KILLED, str(db), str(number + 1)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    before = (0, *VERSIONS)[number]
    with closing(SqliteStore(db)) as store:
        with store.reading() as connection:
            assert version_of(connection) == before
        assert migrate(store) == (before, LATEST)
        assert versions(store) == list(VERSIONS)


def test_four_processes_migrate_one_new_file(
    db: Path, race: Callable[[list[list[str]]], list[str]]
):
    assert race([[sys.executable, "-c", RACING, str(db)]] * 4) == [""] * 4
    with closing(SqliteStore(db)) as store:
        assert versions(store) == list(VERSIONS)


def test_a_file_without_a_write_ahead_journal_is_waited_for_while_another_writes(db: Path):
    with closing(sqlite3.connect(db, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE theirs (id INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        end = Timer(0.3, other.execute, ["COMMIT"])
        end.start()
        store = open_store(db)
        end.join()
    assert versions(store) == list(VERSIONS)
    store.close()


def test_a_database_of_the_original_keeps_all_that_it_has(original: Path):
    store = open_store(original)
    assert versions(store) == list(VERSIONS)
    with store.reading() as connection:
        assert [atom.atom_id for atom in scan(connection, Atom)] == ["a-'1'", "a-2"]
        (opportunity,) = scan(connection, Opportunity)
        assert [each.text for each in opportunity.requirements] == ["Kafka", "Terraform"]
        (interaction,) = scan(connection, Interaction)
        assert (interaction.state, interaction.transition_index) == (2, 0)
        (resume,) = scan(connection, Resume)
        assert resume.resume_hash == f"sha256:{sha256(resume.markdown)}"
        (run,) = scan(connection, Run)
        (entry,) = scan(connection, Entry, run.run_id)
        assert (run.summary, entry.stale) == ({"indexed": 1}, False)
    audit = AuditLog(store)
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
    index = Indexing(audit, STUB_EMBEDDER, MemoryVectors())
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
def test_odd_rows_of_the_original_keep_no_database_out_and_stay_as_they_are(
    original: Path, run: RunCommand
):
    with closing(sqlite3.connect(original)) as connection, connection:
        for statement in ODD:
            connection.execute(statement)
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


def test_tables_that_the_original_left_without_their_version_are_kept(original: Path):
    with closing(sqlite3.connect(original)) as connection, connection:
        connection.execute("DELETE FROM schema_version")
    with closing(open_store(original)) as store:
        assert versions(store) == list(VERSIONS)
        with store.reading() as connection:
            assert len(list(scan(connection, Atom))) == 2


def test_columns_of_the_original_may_have_another_order(db: Path):
    with closing(sqlite3.connect(db)) as other:
        other.execute(
            "CREATE TABLE atoms (claim TEXT, atom_id TEXT PRIMARY KEY, verified INTEGER, "
            "title TEXT, evidence_refs_json TEXT, domain TEXT, tags_json TEXT)"
        )
    atom = Atom("a", "d", "t", "c", ("x",), verified=True, evidence_refs=("r",))
    with closing(open_store(db)) as store, store.writing() as connection:
        upsert(connection, [atom])
        assert list(scan(connection, Atom)) == [atom]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (LATEST + 1, "version 11 and was left as it is.* Run `.* --upgrade"),
        (7, "version 7 and was left as it is"),
    ],
)
def test_a_version_of_another_plugin_is_refused_and_stays(db: Path, version: int, message: str):
    with closing(sqlite3.connect(db)) as other, other:
        other.execute("CREATE TABLE schema_version (version INTEGER, applied_at TEXT)")
        other.execute("INSERT INTO schema_version VALUES (?, 'now')", (version,))
    with pytest.raises(ApiError, match=message):
        open_store(db)
    with closing(sqlite3.connect(db)) as other:
        assert other.execute("SELECT version FROM schema_version").fetchall() == [(version,)]


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
