"""What was put into a repository comes out of it, in files and in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from sqlite3 import ProgrammingError

import pytest

from standards_mcp import ApiError, InvalidInputError
from standards_mcp_career.database import Connection, Store
from standards_mcp_career.indexing import fail_unfinished, latest_hashes
from standards_mcp_career.records import (
    Atom,
    Entry,
    Interaction,
    Opportunity,
    Requirement,
    Resume,
    Run,
    StoredDecision,
)
from standards_mcp_career.sqlite import SqliteStore
from standards_mcp_career.tables import atoms_revision, find, insert, next_number, scan, upsert
from standards_mcp_career.vectors import Source

ODD = (
    'it\'s "quoted"',
    "two\nlines\r\n",
    "'; DROP TABLE atoms; --",
    'a"b\\c\u2028\U0001f600',
    "x" * 1_000_000,
)
MAX_ID = 600
"""An index of PostgreSQL has rows of 2,704 bytes at most."""
SOURCE = Source("deterministic-stub", "m", "v")


def add_run(
    connection: Connection, run_id: str, status: str = "completed", model: str = "m"
) -> None:
    run = Run(run_id, "2026-01-01T00:00:00Z", None, "deterministic-stub", model, "v", status, {})
    insert(connection, "index_runs", [asdict(run)])


def add_entries(connection: Connection, run_id: str, *entries: Entry) -> None:
    insert(connection, "index_entries", [{"run_id": run_id, **asdict(each)} for each in entries])


def add_resume(connection: Connection, resume: Resume) -> None:
    names = ("resume_id", "markdown", "resume_hash", "created_at")
    row = asdict(resume)
    insert(connection, "resumes", [{name: row[name] for name in names}])
    insert(connection, "resume_meta", [{k: v for k, v in row.items() if k not in names[1:]}])


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_is_kept_in_every_field(store: Store, text: str):
    keep_text(store, text, text if isinstance(store, SqliteStore) else text[:MAX_ID])


def test_a_null_character_is_kept_in_sqlite_and_refused_by_postgres(store: Store):
    text = "nul\0in it"
    if isinstance(store, SqliteStore):
        keep_text(store, text, text)
        return
    with pytest.raises(InvalidInputError, match="null character"), store.writing() as connection:
        upsert(connection, [Atom("a", claim=text)])
    with pytest.raises(InvalidInputError, match="null character"), store.reading() as connection:
        find(connection, Atom, text)
    with store.writing() as connection:  # JSON escapes it
        upsert(connection, [Atom("a", claim="c", tags=(text,))])
        assert list(scan(connection, Atom)) == [Atom("a", claim="c", tags=(text,))]


def keep_text(store: Store, text: str, key: str) -> None:
    atom = Atom(key, text, text, text, (text,), verified=True, evidence_refs=(text, text))
    requirements = (Requirement(text, (text,), required=False), Requirement(text))
    opportunity = Opportunity(key, text, text, text, requirements)
    interaction = Interaction(key, key, 1, 2)
    resume = Resume(key, text, key, *[text] * 6)
    entry = Entry(key, key, text, text, stale=True)
    decision = StoredDecision(key, key, {"more": [text]})
    with store.writing() as connection:
        upsert(connection, [atom])
        upsert(connection, [opportunity])
        upsert(connection, [interaction])
        add_resume(connection, resume)
        add_run(connection, key, text, text)
        add_entries(connection, key, entry)
        insert(connection, "decision_records", [asdict(decision)])
    with store.reading() as connection:
        assert find(connection, Atom, key) == atom
        assert list(scan(connection, Atom)) == [atom]
        assert find(connection, Opportunity, key) == opportunity
        assert list(scan(connection, Opportunity)) == [opportunity]
        assert find(connection, Interaction, key) == interaction
        assert list(scan(connection, Interaction)) == [interaction]
        assert find(connection, Resume, key) == resume
        assert find(connection, Resume, key, column="resume_hash") == resume
        assert list(scan(connection, Resume)) == [resume]
        run = find(connection, Run, key)
        assert run is not None
        assert (run.status, run.model_id) == (text, text)
        assert list(scan(connection, Entry, key)) == [entry]
        assert find(connection, StoredDecision, key) == decision
        assert list(scan(connection, StoredDecision)) == [decision]


def test_what_is_not_there_is_none(store: Store):
    with store.reading() as connection:
        assert find(connection, Atom, "x") is None
        assert find(connection, Opportunity, "x") is None
        assert find(connection, Interaction, "x") is None
        assert find(connection, Resume, "x") is None
        assert find(connection, Run, "x") is None
        assert find(connection, StoredDecision, "x") is None


def test_a_record_takes_the_place_of_the_one_with_its_id(store: Store):
    one = Opportunity("o", "C", "R", "s", (Requirement("a"), Requirement("b")))
    other = replace(one, company="D", requirements=(Requirement("c"),))
    with store.writing() as connection:
        upsert(connection, [one])
        upsert(connection, [other])
        assert list(scan(connection, Opportunity)) == [other]


def test_the_revision_of_atoms_rises_with_each_change(store: Store):
    atom = Atom("a", "d", "t", "c", (), verified=True, evidence_refs=())
    found: list[int] = []
    for records in ([], [atom], [atom]):
        with store.writing() as connection:
            upsert(connection, records)
            found.append(atoms_revision(connection))
    assert found == [-1, 0, 1]


def test_counters_count_each_for_itself(store: Store):
    with store.writing() as connection:
        names = ("run", "run", "other", "run")
        assert [next_number(connection, name) for name in names] == [0, 1, 0, 2]


def test_an_import_leaves_the_state_of_an_interaction_to_events(
    store: Store, add_interaction: Callable[..., None]
):
    add_interaction(store, "i", 2, 5)
    add_interaction(store, "i")
    with store.reading() as connection:
        assert list(scan(connection, Interaction)) == [Interaction("i", "o-1", 2, 5)]


def test_an_error_undoes_the_whole_transaction(store: Store):
    atom = Atom("a", "d", "t", "c", (), verified=True, evidence_refs=())

    def write() -> None:
        with store.writing() as connection:
            upsert(connection, [atom])
            upsert(connection, [Interaction("i", "unknown", 0, 0)])

    with pytest.raises(ApiError, match=r"(?i)foreign key.*plugins\.career\.(db|postgres)"):
        write()
    with store.reading() as connection:
        assert list(scan(connection, Atom)) == []


def test_a_transaction_that_its_user_rolls_back_keeps_nothing(store: Store):
    with store.writing() as connection:
        upsert(connection, [Atom("a", claim="c")])
        connection.rollback()
    with store.writing() as connection:
        assert list(scan(connection, Atom)) == []


def test_the_newest_completed_run_counts_by_its_number(store: Store):
    with store.writing() as connection:
        for number, status in ((9, "completed"), (10, "completed"), (11, "failed")):
            add_run(connection, f"run-{number}", status)
            entry = Entry("atom", "a", f"hash-{number}", "", stale=False)
            add_entries(connection, f"run-{number}", entry)
        add_entries(connection, "run-9", Entry("atom", "b", "b-9", "", stale=False))
        add_run(connection, "run-12", model="other")
        assert latest_hashes(connection, SOURCE) == {
            ("atom", "a"): "hash-10",
            ("atom", "b"): "b-9",
        }
        assert [run.run_id for run in scan(connection, Run)] == [
            "run-9",
            "run-10",
            "run-11",
            "run-12",
        ]


def test_a_run_that_is_found_running_has_failed(store: Store):
    with store.writing() as connection:
        add_run(connection, "run-0", "pending")
        add_run(connection, "run-1", "running")
        add_run(connection, "run-2")
    fail_unfinished(store)
    with store.reading() as connection:
        assert [run.status for run in scan(connection, Run)] == [
            "failed",
            "failed",
            "completed",
        ]


def test_half_of_a_character_is_wrong_input(store: Store):
    with store.reading() as connection:
        assert list(scan(connection, Atom)) == []
    atom = Atom("a", "d", "t", "\ud800")
    with (
        pytest.raises(InvalidInputError, match="lone surrogate"),
        store.writing() as connection,
    ):
        upsert(connection, [atom])


def test_the_text_of_a_record_is_in_no_error(store: Store):
    resume = Resume("r", "a secret career", "h", "now", "p", "s", "m", "now", "0.3")
    with store.writing() as connection:
        add_resume(connection, resume)
    with pytest.raises(ApiError) as raised, store.writing() as connection:
        add_resume(connection, resume)
    assert "secret" not in f"{raised.value}{raised.value.__cause__}"


def test_a_closed_store_ends_its_connections_and_refuses_calls_at_once(tmp_path: Path):
    store = SqliteStore(tmp_path / "career.db")
    with store.reading() as first, store.reading() as second, store.reading() as third:
        pass
    with store.writing() as busy:
        store.close()
        upsert(busy, [])
    for connection in (first, second, third, busy):
        with pytest.raises(ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    with pytest.raises(ApiError, match="it is closed"), store.reading():
        pass
