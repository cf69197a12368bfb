"""PostgreSQL: nodes that share it, servers and nodes that die, and errors without secrets."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from standards_mcp import ApiError
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.indexing import Indexing, fail_unfinished
from standards_mcp_career.interactions import Coordinator
from standards_mcp_career.postgres import PostgresStore
from standards_mcp_career.records import Atom, Interaction, Opportunity, Requirement, Run
from standards_mcp_career.schema import LATEST, migrate, open_store, version_of
from standards_mcp_career.tables import scan, upsert
from standards_mcp_career.vectors import STUB_EMBEDDER, MemoryVectors
from standards_mcp_encoders import Vectors

pytestmark = pytest.mark.slow
INTERACTIONS = 100
IMPORTS = """
import os, signal, sys, time
from standards_mcp import ApiError
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.interactions import Coordinator
from standards_mcp_career.schema import open_store

address = PostgresAddress.parse(sys.argv[1])
"""
# A client of a tool does the same: it tries again with the same key.
WRITER = f"""{IMPORTS}
store = open_store(address)
coordinator, audit, name = Coordinator(store), AuditLog(store), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
failures = 0
for number in range({INTERACTIONS}):
    outcome = ""
    while not outcome:
        outcome = coordinator.apply(f"i-{{number:03}}", "Prepare", name).outcome
        if outcome == "backend_error":
            outcome, failures = "", failures + 1
            time.sleep(0.02)
    while True:
        try:
            audit.append("shared", "Kind", {{"writer": name, "number": number}})
            break
        except ApiError:
            failures += 1
            time.sleep(0.02)
    print(number, outcome, flush=True)
store.close()
print("failures", failures)
"""
RACING = f"""{IMPORTS}
print("ready", flush=True)
sys.stdin.readline()
open_store(address).close()
"""
KILLED = f"""{IMPORTS}
from standards_mcp_career.postgres import _PostgresConnection
execute = _PostgresConnection.execute

def die_before_the_version_is_noted(self, statement, parameters=()):
    if statement.startswith("INSERT INTO schema_version"):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(self, statement, parameters)

_PostgresConnection.execute = die_before_the_version_is_noted
open_store(address)
"""
HOLDER = f"""{IMPORTS}
store = open_store(address)
with store.writing() as connection:
    connection.execute("TRUNCATE atoms")
    print("ready", flush=True)
    time.sleep(90)
"""

BUILDER = f"""{IMPORTS}
from standards_mcp_career.indexing import Indexing
from standards_mcp_career.vectors import MemoryVectors, Source

class SlowEmbedder:
    source = Source("slow", "slow", "1")

    def embed(self, texts):
        print("ready", flush=True)
        time.sleep(90)

Indexing(AuditLog(open_store(address)), SlowEmbedder(), MemoryVectors()).build()
"""


@pytest.fixture
def opened(postgres_address: PostgresAddress) -> Iterator[Store]:
    with closing(open_store(postgres_address)) as store:
        yield store


def start(script: str, server: object, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, server.url("career"), *arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def receipts_of(store: Store) -> int:
    with store.reading() as connection:
        query = "SELECT count(*) FROM interaction_receipts"
        return int(connection.execute(query).fetchone()[0])


def end_connections(server: object) -> None:
    with server.connect() as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'standards-mcp'"
        )


def test_a_server_that_is_killed_amid_writes_of_two_nodes_loses_nothing_that_was_acknowledged(
    opened: Store, postgres_server: object
):
    with opened.writing() as connection:
        upsert(connection, [Opportunity("o", "C", "R")])
        upsert(connection, [Interaction(f"i-{n:03}", "o") for n in range(INTERACTIONS)])
    writers = {name: start(WRITER, postgres_server, name) for name in ("one", "two")}
    for writer in writers.values():
        writer.stdin.write("\n")
        writer.stdin.flush()
    for count in (20, 50):
        while receipts_of(opened) < count:
            time.sleep(0.01)
        postgres_server.kill()
        postgres_server.start()
    printed = {name: writer.communicate(timeout=120) for name, writer in writers.items()}
    for _, errors in printed.values():  # the driver may warn of a pipeline that was cut off
        assert all(line.startswith("error ignored") for line in errors.splitlines()), errors
    with opened.reading() as connection:
        receipts = connection.execute(
            "SELECT interaction_id, idempotency_key FROM interaction_receipts"
        ).fetchall()
        positions = [(each.state, each.transition_index) for each in scan(connection, Interaction)]
    # Each event counts once, whichever of the two came first.
    assert Counter(identifier for identifier, _ in receipts) == {
        f"i-{n:03}": 1 for n in range(INTERACTIONS)
    }
    assert positions == [(1, 1)] * INTERACTIONS
    failures = dict[str, int]()
    for name, (output, _) in printed.items():
        outcomes = dict(line.split() for line in output.splitlines())
        failures[name] = int(outcomes.pop("failures"))
        assert list(outcomes) == [str(number) for number in range(INTERACTIONS)]
        for number, outcome in outcomes.items():
            is_mine = (f"i-{int(number):03}", name) in receipts
            assert is_mine == (outcome in ("applied", "already_applied"))
    verdict = AuditLog(opened).verify("shared")["traces"][0]
    assert verdict["valid"]
    events = [json.loads(event.payload) for event in AuditLog(opened).events("shared")]
    for name in writers:
        noted = [event["number"] for event in events if event["writer"] == name]
        assert set(noted) == set(range(INTERACTIONS))
        # One whose commit was not acknowledged may be noted, and is noted again.
        assert len(noted) - INTERACTIONS <= failures[name]
    assert sum(failures.values()) > 0


def test_a_connection_that_is_lost_in_a_call_is_its_error_and_the_next_call_works(
    opened: Store, postgres_server: object
):
    def write() -> None:
        with opened.writing() as connection:
            upsert(connection, [Atom("lost", claim="c")])
            end_connections(postgres_server)
            upsert(connection, [Atom("lost too", claim="c")])

    with pytest.raises(ApiError, match=r"plugins\.career\.postgres") as raised:
        write()
    assert "hush" not in str(raised.value)
    with opened.writing() as connection:
        assert list(scan(connection, Atom)) == []
        upsert(connection, [Atom("a", claim="c")])


def test_idle_connections_that_the_server_has_ended_are_replaced_without_an_error(
    opened: Store, postgres_server: object
):
    with opened.reading(), opened.reading(), opened.reading():
        pass
    end_connections(postgres_server)
    with opened.writing() as connection:
        upsert(connection, [Atom("a", claim="c")])
    with opened.reading() as one, opened.reading() as two:
        assert [len(list(scan(each, Atom))) for each in (one, two)] == [1, 1]


def test_a_server_that_is_away_is_told_with_the_next_step_and_without_the_password(
    opened: Store, postgres_server: object, add_interaction: Callable[..., None]
):
    add_interaction(opened, "i")
    coordinator = Coordinator(opened)
    postgres_server.stop()
    try:
        with pytest.raises(ApiError) as raised, opened.reading():
            pass
        outcome = coordinator.apply("i", "Prepare", "k")
    finally:
        postgres_server.start()
    for message in (str(raised.value), outcome.error_message):
        assert "cannot be reached" in message
        assert "plugins.career.postgres" in message
        assert "hush" not in message
        assert "\n" not in message
    assert outcome.outcome == "backend_error"
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"


def test_a_node_that_is_killed_while_it_writes_holds_up_nobody(
    opened: Store, postgres_server: object
):
    with opened.writing() as connection:
        upsert(connection, [Atom("a", claim="c")])
    with start(HOLDER, postgres_server) as holder:
        holder.send_signal(signal.SIGKILL)
    with opened.writing() as connection:
        assert [atom.atom_id for atom in scan(connection, Atom)] == ["a"]
        (limit,) = connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
    assert limit == "1min"  # for a node that hangs


def test_a_node_that_starts_fails_only_the_builds_of_nodes_that_have_gone(
    opened: Store, postgres_server: object
):
    def statuses() -> list[str]:
        fail_unfinished(opened)  # as a node does that starts
        with opened.reading() as connection:
            return [run.status for run in scan(connection, Run)]

    with opened.writing() as connection:
        upsert(connection, [Atom("a", claim="c")])
    with start(BUILDER, postgres_server) as first:
        assert statuses() == ["running"]
        with start(BUILDER, postgres_server) as second:
            assert statuses() == ["running", "running"]
            first.send_signal(signal.SIGKILL)
            while statuses() == ["running", "running"]:
                time.sleep(0.01)
            assert statuses() == ["failed", "running"]
            second.send_signal(signal.SIGKILL)
    while statuses() == ["failed", "running"]:
        time.sleep(0.01)
    assert statuses() == ["failed", "failed"]


def test_a_build_ends_well_though_the_server_has_ended_its_claim(
    opened: Store, postgres_server: object
):
    class LosingEmbedder:
        source = STUB_EMBEDDER.source

        def embed(self, texts: list[str]) -> Vectors:
            end_connections(postgres_server)
            return STUB_EMBEDDER.embed(texts)

    with opened.writing() as connection:
        upsert(connection, [Atom("a", claim="c")])
    Indexing(AuditLog(opened), LosingEmbedder(), MemoryVectors()).build()
    with opened.reading() as connection:
        assert [run.status for run in scan(connection, Run)] == ["completed"]
    with postgres_server.connect() as admin:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        assert admin.execute(query).fetchone() == (0,)


def test_a_writer_that_waits_too_long_says_so(opened: Store, monkeypatch: pytest.MonkeyPatch):
    hasty = PostgresStore._begin_writing.replace("'15s'", "'50ms'")
    monkeypatch.setattr(PostgresStore, "_begin_writing", hasty)
    with opened.writing() as connection:
        message = "another process is writing; try again"
        with pytest.raises(ApiError, match=message), opened.writing():
            pass
        upsert(connection, [Atom("a", claim="c")])
    with opened.writing() as connection:
        assert len(list(scan(connection, Atom))) == 1


def test_threads_count_without_losing_one(opened: Store):
    audit = AuditLog(opened)

    def write() -> None:
        for _ in range(5):
            audit.append("t", "Kind", {})

    threads = [threading.Thread(target=write) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (verdict,) = audit.verify("t")["traces"]
    assert (verdict["valid"], verdict["first_invalid_index"]) == (True, 60)


def test_a_reader_sees_one_state_and_cannot_write(opened: Store):
    with opened.reading() as connection:
        assert list(scan(connection, Atom)) == []
        with opened.writing() as other:
            upsert(other, [Atom("a", claim="c")])
        assert list(scan(connection, Atom)) == []
    with pytest.raises(ApiError, match="read-only"), opened.reading() as connection:
        upsert(connection, [Atom("b", claim="c")])


def test_rows_are_read_in_parts_and_may_be_left(opened: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("standards_mcp_career.postgres._BATCH_ROWS", 10)
    records = [
        Opportunity(f"o-{n:04}", "C", "R", requirements=(Requirement("a"), Requirement("b")))
        for n in range(25)
    ]
    with opened.writing() as connection:
        upsert(connection, records)
    with opened.reading() as connection:
        assert list(scan(connection, Opportunity)) == records
        rows = scan(connection, Opportunity)
        assert next(rows) == records[0]
    del rows  # after the end of its transaction
    gc.collect()
    with opened.reading() as connection:
        assert next(scan(connection, Opportunity)) == records[0]


def test_four_nodes_migrate_one_new_database(
    postgres_address: PostgresAddress,
    postgres_server: object,
    race: Callable[[list[list[str]]], list[str]],
):
    command = [sys.executable, "-c", RACING, postgres_server.url("career")]
    assert race([command] * 4) == [""] * 4
    with closing(PostgresStore(postgres_address)) as store, store.reading() as connection:
        rows = connection.execute("SELECT version FROM schema_version").fetchall()
    assert rows == [(LATEST,)]


def test_a_migration_that_is_killed_leaves_an_empty_database(
    postgres_address: PostgresAddress, postgres_server: object
):
    command = [sys.executable, "-c", KILLED, postgres_server.url("career")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with closing(PostgresStore(postgres_address)) as store:
        with store.reading() as connection:
            assert (version_of(connection), connection.has_table("atoms")) == (0, False)
        assert migrate(store) == (0, LATEST)


def test_a_newer_version_and_tables_of_another_program_are_refused_and_stay(
    postgres_address: PostgresAddress, postgres_server: object
):
    with postgres_server.connect("career") as admin:
        admin.execute("CREATE TABLE resumes (theirs int)")
    with pytest.raises(ApiError, match='"resumes" already exists'):
        open_store(postgres_address)
    with postgres_server.connect("career") as admin:
        admin.execute("CREATE TABLE schema_version (version int, applied_at text)")
        admin.execute("INSERT INTO schema_version VALUES (11, 'now')")
    message = r"version 11 and was left as it is.*plugins\.career\.postgres"
    with pytest.raises(ApiError, match=message):
        open_store(postgres_address)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (("/career?", "/missing?"), r'cannot be reached.*database "missing" does not exist'),
        (("%2Fhush", "%2Fwrong"), "cannot be reached.*password authentication failed"),
        (("?host=", "?hushhost=x&host="), "the address has an unknown parameter"),
        (("%2Fhush", "%zzhush"), "a % that is not encoded as %25"),
        (("?host=", "?sslmode=maybe&host="), "cannot be reached.*sslmode"),
    ],
)
def test_an_address_that_does_not_work_is_told_without_its_secrets(
    postgres_address: PostgresAddress, change: tuple[str, str], cause: str
):
    wrong = replace(postgres_address, url=postgres_address.url.replace(*change))
    assert wrong.url != postgres_address.url
    with pytest.raises(ApiError, match=cause) as raised:
        open_store(wrong)
    error: BaseException | None = raised.value
    while error is not None:
        assert "hush" not in str(error)
        error = error.__cause__
    assert "hush" not in repr(wrong)


def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: object):
    address = postgres_server.create("latin", "ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ApiError, match="its encoding is LATIN1; create one with the encoding UTF8"):
        open_store(address)


def test_ids_have_one_order_whatever_the_language_of_the_database(postgres_server: object):
    options = "TEMPLATE template0 LOCALE 'C.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'en'"
    ids = ["B", "a", "a-1", "a_", "ä"]
    orders: list[list[str]] = []
    for place in (postgres_server.create("english", options), None):
        with closing(open_store(place)) as store, store.writing() as connection:
            upsert(connection, [Atom(each, claim="c") for each in reversed(ids)])
            orders.append([atom.atom_id for atom in scan(connection, Atom)])
    assert orders == [ids, ids]
