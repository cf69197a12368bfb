"""What was put into a repository comes out of it, in files and in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection, ProgrammingError

import pytest

from standards_mcp import ApiError, InvalidInputError
from standards_mcp_career.database import Store, next_number
from standards_mcp_career.indexing import (
    Entry,
    add_entries,
    all_runs,
    entries_of,
    fail_unfinished,
    get_run,
    latest_entries,
)
from standards_mcp_career.matching import (
    add_decision,
    all_decisions,
    get_decision,
)
from standards_mcp_career.records import (
    Atom,
    Interaction,
    Opportunity,
    Requirement,
    all_atoms,
    all_interactions,
    all_opportunities,
    atoms_revision,
    get_atom,
    get_interaction,
    get_opportunity,
    upsert_atoms,
    upsert_interactions,
    upsert_opportunities,
)
from standards_mcp_career.resumes import (
    Resume,
    ResumeMeta,
    add_resume,
    all_resumes,
    find_resume,
    get_resume,
)
from standards_mcp_career.vectors import Source

ODD = (
    'it\'s "quoted"',
    "two\nlines\r\n",
    "'; DROP TABLE atoms; --",
    'a"b\\c\u2028\U0001f600',
    "nul\0in it",
    "x" * 1_000_000,
)
SOURCE = Source("deterministic-stub", "m", "v")


def add_run(
    connection: Connection, run_id: str, status: str = "completed", model: str = "m"
) -> None:
    row = (run_id, "2026-01-01T00:00:00Z", None, "deterministic-stub", model, "v", status, "{}")
    connection.execute(f"INSERT INTO index_runs VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_is_kept_in_every_field(store: Store, text: str):
    atom = Atom(text, text, text, text, (text,), verified=True, evidence_refs=(text, text))
    requirements = (Requirement(text, (text,), required=False), Requirement(text))
    opportunity = Opportunity(text, text, text, text, requirements)
    interaction = Interaction(text, text, 1, 2)
    resume = Resume(text, text, text, text, ResumeMeta(text, text, text, text, text))
    entry = Entry(text, text, text, text, text, stale=True)
    decision = {"decision_id": text, "trace_id": text, "more": [text]}
    with store.writing() as connection:
        upsert_atoms(connection, [atom])
        upsert_opportunities(connection, [opportunity])
        upsert_interactions(connection, [interaction])
        add_resume(connection, resume)
        add_run(connection, text, text, text)
        add_entries(connection, text, [entry])
        add_decision(connection, decision)
    with store.reading() as connection:
        assert get_atom(connection, text) == atom
        assert all_atoms(connection) == [atom]
        assert get_opportunity(connection, text) == opportunity
        assert all_opportunities(connection) == [opportunity]
        assert get_interaction(connection, text) == interaction
        assert all_interactions(connection) == [interaction]
        assert get_resume(connection, text) == find_resume(connection, text) == resume
        assert all_resumes(connection) == [resume]
        run = get_run(connection, text)
        assert run is not None
        assert (run["status"], run["model_id"]) == (text, text)
        assert entries_of(connection, text) == [entry]
        assert get_decision(connection, text) == decision
        assert all_decisions(connection) == [decision]


def test_what_is_not_there_is_none(store: Store):
    with store.reading() as connection:
        assert get_atom(connection, "x") is None
        assert get_opportunity(connection, "x") is None
        assert get_interaction(connection, "x") is None
        assert get_resume(connection, "x") is None
        assert get_run(connection, "x") is None
        assert get_decision(connection, "x") is None


def test_a_record_takes_the_place_of_the_one_with_its_id(store: Store):
    one = Opportunity("o", "C", "R", "s", (Requirement("a"), Requirement("b")))
    other = replace(one, company="D", requirements=(Requirement("c"),))
    with store.writing() as connection:
        upsert_opportunities(connection, [one])
        upsert_opportunities(connection, [other])
        assert all_opportunities(connection) == [other]


def test_the_revision_of_atoms_rises_with_each_change(store: Store):
    atom = Atom("a", "d", "t", "c", (), verified=True, evidence_refs=())
    found: list[int] = []
    for records in ([], [atom], [atom]):
        with store.writing() as connection:
            upsert_atoms(connection, records)
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
        assert all_interactions(connection) == [Interaction("i", "o-1", 2, 5)]


def test_an_error_undoes_the_whole_transaction(store: Store):
    atom = Atom("a", "d", "t", "c", (), verified=True, evidence_refs=())

    def write() -> None:
        with store.writing() as connection:
            upsert_atoms(connection, [atom])
            upsert_interactions(connection, [Interaction("i", "unknown", 0, 0)])

    with pytest.raises(ApiError, match=r"FOREIGN KEY.*plugins\.career\.db"):
        write()
    with store.reading() as connection:
        assert all_atoms(connection) == []


def test_the_newest_completed_run_counts_by_its_number(store: Store):
    with store.writing() as connection:
        for number, status in ((9, "completed"), (10, "completed"), (11, "failed")):
            add_run(connection, f"run-{number}", status)
            entries = [Entry("atom", "a", f"hash-{number}", "", None, stale=False)]
            add_entries(connection, f"run-{number}", entries)
        add_entries(connection, "run-9", [Entry("atom", "b", "b-9", "", None, stale=False)])
        add_run(connection, "run-12", model="other")
        latest = latest_entries(connection, SOURCE)
        assert {key: entry.source_hash for key, entry in latest.items()} == {
            ("atom", "a"): "hash-10",
            ("atom", "b"): "b-9",
        }
        assert [run["run_id"] for run in all_runs(connection)] == [
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
        fail_unfinished(connection)
        assert [run["status"] for run in all_runs(connection)] == ["failed", "failed", "completed"]


def test_half_of_a_character_is_wrong_input(store: Store):
    with store.reading() as connection:
        assert all_atoms(connection) == []
    atom = Atom("a", "d", "t", "\ud800")
    with (
        pytest.raises(InvalidInputError, match="lone surrogate"),
        store.writing() as connection,
    ):
        upsert_atoms(connection, [atom])


def test_a_run_is_shown_with_its_entries(store: Store):
    with store.writing() as connection:
        add_run(connection, "run-0")
        add_entries(connection, "run-0", [Entry("atom", "a", "s", "v", None, stale=True)])
        shown = get_run(connection, "run-0")
        assert get_run(connection, "run-1") is None
    assert shown is not None
    assert shown["entries"] == [
        {
            "artifact_type": "atom",
            "artifact_id": "a",
            "source_hash": "s",
            "vector_hash": "v",
            "stale": True,
        }
    ]


def test_the_text_of_a_record_is_in_no_error(store: Store):
    resume = Resume("r", "a secret career", "h", "now", None)
    with store.writing() as connection:
        add_resume(connection, resume)
    with pytest.raises(ApiError) as raised, store.writing() as connection:
        add_resume(connection, resume)
    assert "secret" not in f"{raised.value}{raised.value.__cause__}"


def test_a_closed_store_ends_its_connections_and_refuses_calls_at_once(tmp_path: Path):
    store = Store(tmp_path / "career.db")
    with store.reading() as first, store.reading() as second, store.reading() as third:
        pass
    with store.writing() as busy:
        store.close()
        upsert_atoms(busy, [])
    for connection in (first, second, third, busy):
        with pytest.raises(ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    with pytest.raises(ApiError, match="it is closed"), store.reading():
        pass
