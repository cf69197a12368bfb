"""The audit log is append-only, and tells what was changed in it."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp import ApiError, InvalidInputError, NotFoundError
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.audit import (
    FIRST_HASH,
    AuditLog,
    Entry,
    Event,
    export_line,
    hash_of,
    read_lines,
    verify_all,
)
from standards_mcp_career.database import Connection, Store
from standards_mcp_career.postgres import PostgresStore
from standards_mcp_career.primitives import compact_json
from standards_mcp_career.schema import open_store

EXAMPLE = Event(
    event_id="evt-1",
    trace_id="trace-0",
    event_type="RunStarted",
    payload='{"operation":"match_pipeline","source":"app_service"}',
    created_at="2026-02-03T04:05:06Z",
    refs=(),
    previous_hash=FIRST_HASH,
    event_hash="f7d713717ec522ad9d1f09f03d99f982385cb37cfd10869a8ef940c6a5337423",
)
WHOLE = {"trace_id": "t", "valid": True, "first_invalid_index": 3, "error": ""}


def extend(audit: AuditLog, trace_id: str, entries: list[Entry]) -> None:
    with audit.store.writing() as connection:
        audit.write(connection, trace_id, entries)


def drop_trigger(connection: Connection, name: str) -> None:
    is_sqlite = isinstance(connection, sqlite3.Connection)
    connection.execute(f"DROP TRIGGER {name}" + ("" if is_sqlite else " ON audit_events"))


def test_the_hash_of_an_event_is_the_published_one():
    assert hash_of(EXAMPLE) == EXAMPLE.event_hash


@pytest.mark.parametrize(
    ("events", "index", "error"),
    [
        ([EXAMPLE], 1, ""),
        (
            [replace(EXAMPLE, previous_hash="x", event_hash="y")],
            0,
            "previous_hash mismatch at index 0",
        ),
        ([EXAMPLE, EXAMPLE], 1, "previous_hash mismatch at index 1"),
        ([replace(EXAMPLE, payload="{}")], 0, "event_hash mismatch at index 0"),
    ],
)
def test_the_previous_hash_is_looked_at_first(events: list[Event], index: int, error: str):
    verdict = {**WHOLE, "trace_id": "trace-0", "valid": not error}
    verdict |= {"first_invalid_index": index, "error": error}
    assert verify_all(events) == {"valid": not error, "traces": [verdict]}


def test_payloads_are_canonical_json(audit: AuditLog, store: Store):
    audit.append("t", "Kind", {"b": "é\"'\n", "a": [1.5, None, True]}, ["x"])
    with store.reading() as connection:
        stored = connection.execute("SELECT payload FROM audit_events").fetchone()[0]
    assert stored == '{"a":[1.5,null,true],"b":"é\\"\'\\n"}'


def test_events_are_read_in_pages_in_the_order_of_writing(audit: AuditLog):
    extend(audit, "t", [Entry("Kind", {"n": n}, [f"o-{n}"]) for n in range(5)])
    audit.append("other", "Kind", {})
    page = audit.page("t", 1, 2)
    assert (page["trace_id"], page["total"]) == ("t", 5)
    assert page["events"] == [
        {
            "event_id": f"evt-{n}",
            "trace_id": "t",
            "event_type": "Kind",
            "payload": {"n": n},
            "created_at": "2026-01-01T00:00:00Z",
            "refs": [f"o-{n}"],
        }
        for n in (1, 2)
    ]
    assert audit.page("unknown") == {"trace_id": "unknown", "total": 0, "events": []}


REFUSED = (
    "UPDATE audit_events SET payload = '{}'",
    "DELETE FROM audit_events",
    """INSERT INTO audit_events SELECT * FROM audit_events WHERE true
    ON CONFLICT (event_id) DO UPDATE SET payload = '{}'""",
)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_was_written_cannot_be_changed(audit: AuditLog, store: Store, statement: str):
    audit.append("t", "Kind", {})
    with pytest.raises(ApiError, match="audit events are never"), store.writing() as connection:
        connection.execute(statement)
    assert audit.verify()["valid"]


def test_postgres_does_not_empty_the_log_at_once(postgres_address: PostgresAddress):
    with closing(open_store(postgres_address)) as store:
        AuditLog(store).append("t", "Kind", {})
        with pytest.raises(ApiError, match="never deleted"), store.writing() as connection:
            connection.execute("TRUNCATE audit_events")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO audit_events SELECT * FROM audit_events",
        """INSERT OR REPLACE INTO audit_events
        (rowid, event_id, trace_id, event_type, payload, created_at, entity_ids_json, idx)
        SELECT rowid, 'new', trace_id, event_type, payload, created_at, entity_ids_json, idx
        FROM audit_events""",
    ],
)
def test_what_was_written_cannot_be_replaced_in_sqlite(statement: str):
    with closing(open_store()) as store:
        audit = AuditLog(store)
        audit.append("t", "Kind", {})
        with pytest.raises(ApiError, match="audit events are never"), store.writing() as connection:
            connection.execute(statement)
        assert audit.verify()["valid"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("payload = '{\"n\":9}'", "event_hash"),
        ("payload = x'ff'", "event_hash"),
        ("event_type = 'Other'", "event_hash"),
        ("created_at = '2027-01-01T00:00:00Z'", "event_hash"),
        ("entity_ids_json = '[\"o-2\"]'", "event_hash"),
        ("entity_ids_json = 'no list'", "event_hash"),
        ("previous_hash = event_hash", "previous_hash"),
        ("event_hash = previous_hash", "event_hash"),
    ],
)
def test_a_changed_event_is_found_by_its_index(
    audit: AuditLog, store: Store, change: str, error: str
):
    extend(audit, "t", [Entry("Kind", {"n": n}, ["o-1"]) for n in range(3)])
    audit.append("other", "Kind", {})
    with store.writing() as connection:
        drop_trigger(connection, "audit_events_no_update")
        if isinstance(store, PostgresStore):  # which has no bytes in columns of texts
            change = change.replace("x'ff'", "chr(255)")
        statement = f"UPDATE audit_events SET {change} WHERE trace_id = 't' AND idx = 1"  # noqa: S608
        connection.execute(statement)
    (found,) = audit.verify("t")["traces"]
    assert found == {
        "trace_id": "t",
        "valid": False,
        "first_invalid_index": 1,
        "error": f"{error} mismatch at index 1",
    }
    assert [each["valid"] for each in audit.verify()["traces"]] == [True, False]
    assert audit.page("t")["total"] == 3


@pytest.mark.parametrize("refs", ["[1]", "[true]", "{}", '["\\ud800"]', "[" * 100_000])
def test_refs_that_are_no_longer_texts_are_a_change(audit: AuditLog, store: Store, refs: str):
    audit.append("t", "Kind", {}, ["1"])
    with store.writing() as connection:
        drop_trigger(connection, "audit_events_no_update")
        connection.execute("UPDATE audit_events SET entity_ids_json = ?", (refs,))
    (found,) = audit.verify("t")["traces"]
    assert found["error"] == "event_hash mismatch at index 0"
    assert audit.page("t")["events"][0]["refs"] == [refs]


def test_an_event_that_was_removed_from_the_middle_is_found(audit: AuditLog, store: Store):
    extend(audit, "t", [Entry("Kind", {"n": n}) for n in range(3)])
    with store.writing() as connection:
        drop_trigger(connection, "audit_events_no_delete")
        connection.execute("DELETE FROM audit_events WHERE idx = 1")
    (found,) = audit.verify("t")["traces"]
    assert found["error"] == "previous_hash mismatch at index 1"


def test_an_unknown_trace_is_not_called_valid(audit: AuditLog):
    with pytest.raises(NotFoundError, match="Trace not found: x"):
        audit.verify("x")
    assert audit.verify() == {"valid": True, "traces": []}


def test_an_export_is_verified_apart_from_the_database(audit: AuditLog):
    extend(audit, "t", [Entry("Kind", {"text": 'quote " and\nline\u2028'}, ["o"])] * 3)
    lines = [export_line(event).encode() for event in audit.events()]
    assert all(line.count(b"\n") == 0 for line in lines)
    assert verify_all(read_lines(lines)) == {"valid": True, "traces": [WHOLE]}
    lines[1] = lines[1].replace(b"Kind", b"Kint")
    (found,) = verify_all(read_lines(lines))["traces"]
    assert found["error"] == "event_hash mismatch at index 1"


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b"\xff", b'{"event_id":1}', b"[" * 10_000])
def test_a_line_that_is_no_event_is_named(line: bytes):
    with pytest.raises(InvalidInputError, match="Line 2 is not an event"):
        list(read_lines([export_line(EXAMPLE).encode(), line]))


def test_threads_write_one_chain(audit: AuditLog):
    def write() -> None:
        for _ in range(10):
            audit.append("t", "Kind", {})

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (found,) = audit.verify("t")["traces"]
    assert (found["valid"], found["first_invalid_index"]) == (True, 80)


def test_a_number_that_json_has_not_is_refused(audit: AuditLog):
    with pytest.raises(ValueError, match="JSON compliant"):
        audit.append("t", "Kind", {"score": float("nan")})
    assert audit.page("t")["total"] == 0


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS)), max_size=5))
def test_any_text_goes_through_an_export(parts: list[tuple[str, list[str]]]):
    events: list[Event] = []
    previous = FIRST_HASH
    for text, refs in parts:
        payload = compact_json({text: text})
        event = Event(text, "t", text, payload, text, tuple(refs), previous, "")
        event = replace(event, event_hash=hash_of(event))
        previous = event.event_hash
        events.append(event)
    read = list(read_lines(export_line(event).encode() for event in events))
    assert read == events
    assert verify_all(read)["valid"]


def test_the_database_says_why_it_refuses(store: Store, audit: AuditLog):
    audit.append("t", "Kind", {})
    with pytest.raises(ApiError) as raised, store.writing() as connection:
        connection.execute("DELETE FROM audit_events")
    assert "audit events are never deleted" in str(raised.value)
    assert isinstance(raised.value.__cause__, (sqlite3.Error, psycopg.Error))
