"""Of many that send at once, one does; and nobody forgets it."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from standards_mcp_career.addresses import RedisAddress
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.interactions import Coordinator, apply_event, position_of
from standards_mcp_career.records import Interaction
from standards_mcp_career.redis_coordinator import RedisCoordinator
from standards_mcp_career.schema import open_store
from standards_mcp_career.tables import scan

THREADS = 20
RACER = """
import json, sys
from pathlib import Path
from standards_mcp_career.interactions import Coordinator
from standards_mcp_career.redis_coordinator import RedisCoordinator
from standards_mcp_career.schema import open_store
from standards_mcp_career.addresses import PostgresAddress, RedisAddress

db, address, name = sys.argv[1:]
store = open_store(PostgresAddress.parse(db) if "://" in db else Path(db))
made = RedisCoordinator(store, RedisAddress.parse(address)) if address else Coordinator(store)
print("ready", flush=True)
sys.stdin.readline()
outcomes = [made.apply(f"i-{n}", "Prepare", name).outcome for n in range(20)]
made.close()
store.close()
print(json.dumps(outcomes))
"""


def coordinator_of(kind: str, store: Store, request: pytest.FixtureRequest) -> Coordinator:
    if kind == "redis":
        return RedisCoordinator(store, RedisAddress.parse(request.getfixturevalue("redis_address")))
    return Coordinator(store)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "redis"])
@pytest.mark.parametrize("is_same_key", [True, False])
def test_twenty_threads_apply_an_event_once(
    kind: str,
    is_same_key: bool,
    db: Path,
    add_interaction: Callable[..., None],
    request: pytest.FixtureRequest,
):
    place = request.getfixturevalue("postgres_address") if kind == "postgres" else db
    store = open_store(None if kind == "memory" else place)
    add_interaction(store, "i")
    audit = AuditLog(store)
    coordinator = coordinator_of(kind, store, request)
    barrier = threading.Barrier(THREADS)
    outcomes: list[str] = []

    def race(number: int) -> None:
        barrier.wait(90)
        key = "same" if is_same_key else f"key-{number}"
        answer = apply_event(coordinator, audit, "i", "Prepare", key, "trace")
        outcomes.append(answer["result"]["outcome"])

    threads = [threading.Thread(target=race, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    others = "already_applied" if is_same_key else "invalid_transition"
    assert Counter(outcomes) == {"applied": 1, others: THREADS - 1}
    (chain,) = audit.verify()["traces"]
    assert (chain["valid"], chain["first_invalid_index"]) == (True, 2 * THREADS)
    coordinator.close()
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
def test_four_processes_apply_each_event_once(
    kind: str,
    db: Path,
    add_interaction: Callable[..., None],
    race: Callable[[list[list[str]]], list[str]],
    request: pytest.FixtureRequest,
):
    place = request.getfixturevalue("postgres_address") if kind == "postgres" else db
    store = open_store(place)
    for number in range(20):
        add_interaction(store, f"i-{number}")
    address = request.getfixturevalue("redis_address") if kind == "redis" else ""
    racer = [sys.executable, "-c", RACER, getattr(place, "url", str(place)), address]
    printed = race([[*racer, f"racer-{number}"] for number in range(4)])
    for outcomes in zip(*map(json.loads, printed), strict=True):
        assert Counter(outcomes) == {"applied": 1, "invalid_transition": 3}
    with store.reading() as connection:
        positions = {
            (each.state, each.transition_index) for each in list(scan(connection, Interaction))
        }
    assert positions == {(1, 1)}
    store.close()


@pytest.mark.usefixtures("interaction")
def test_a_redis_that_is_killed_keeps_its_receipts(coordinator: Coordinator, redis_server: object):
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"
    redis_server.kill()
    try:
        lost = coordinator.apply("i", "Send", "l")
    finally:
        redis_server.start()
    assert (lost.outcome, lost.before_state, lost.after_state, lost.transition_index) == (
        "backend_error",
        0,
        0,
        0,
    )
    assert f"127.0.0.1:{redis_server.port}" in lost.error_message
    assert "hush" not in lost.error_message
    assert coordinator.apply("i", "Prepare", "k").outcome == "already_applied"
    assert coordinator.apply("i", "Send", "l").outcome == "applied"


@pytest.mark.usefixtures("interaction")
def test_a_redis_that_has_forgotten_begins_where_the_database_is(
    coordinator: Coordinator, redis_address: str, store: Store
):
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"
    with Redis.from_url(redis_address) as client:
        client.flushall()
        client.script_flush()
    assert coordinator.apply("i", "Send", "l").outcome == "applied"
    with store.reading() as connection:
        assert position_of(connection, "i").transition_index == 2


def test_the_largest_index_comes_back_from_redis_as_it_was(
    coordinator: Coordinator, store: Store, add_interaction: Callable[..., None]
):
    add_interaction(store, "i", 2, 10**9)
    for name in ("applied", "already_applied"):
        outcome = coordinator.apply("i", "ReceiveReply", "k")
        assert (outcome.outcome, outcome.transition_index) == (name, 10**9 + 1)


@pytest.mark.usefixtures("interaction")
def test_the_database_follows_also_when_it_was_missed_before(
    coordinator: Coordinator, store: Store
):
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"
    with store.writing() as connection:
        connection.execute("UPDATE interactions SET state = 0, transition_index = 0")
    assert coordinator.apply("i", "Prepare", "k").outcome == "already_applied"
    with store.reading() as connection:
        assert position_of(connection, "i").state == 1


@pytest.mark.usefixtures("interaction")
def test_an_event_that_redis_has_applied_counts_when_the_database_fails(
    coordinator: Coordinator,
    store: Store,
    caplog: pytest.LogCaptureFixture,
):
    logging.getLogger("standards_mcp").propagate = True
    with store.writing() as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON interactions "
            "BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"
    assert "interaction i is behind Redis" in caplog.text
    with store.writing() as connection:
        connection.execute("DROP TRIGGER full")
    assert coordinator.apply("i", "Prepare", "k").outcome == "already_applied"
    with store.reading() as connection:
        assert position_of(connection, "i").state == 1
    with store.writing() as connection:
        connection.execute("ALTER TABLE interactions RENAME TO gone")
    assert coordinator.apply("i", "Prepare", "k").outcome == "backend_error"


@pytest.mark.usefixtures("interaction")
@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_a_host_that_cannot_be_looked_up_is_an_outcome(store: Store, host: str):
    coordinator = RedisCoordinator(store, RedisAddress.parse(f"redis://{host}"))
    assert coordinator.apply("i", "Prepare", "k").outcome == "backend_error"
    coordinator.close()


@pytest.mark.usefixtures("interaction")
@pytest.mark.parametrize("form", ["tcp", "unix", "password"])
def test_a_redis_that_refuses_is_told_without_secrets(
    redis_server: object, store: Store, form: str
):
    port = redis_server.port
    address = {
        "tcp": f"tcp://127.0.0.1:{port}",
        "unix": f"unix://{redis_server.socket}?db=1",
        "password": f"redis://user:wrongsecret@127.0.0.1:{port}",
    }[form]
    coordinator = RedisCoordinator(store, RedisAddress.parse(address))
    outcome = coordinator.apply("i", "Prepare", "k")
    assert outcome.outcome == "backend_error"
    assert "wrongsecret" not in outcome.error_message
    coordinator.close()


@pytest.mark.usefixtures("interaction")
def test_a_database_that_fails_is_an_outcome_too(store: Store):
    with store.writing() as connection:
        connection.execute("DROP TABLE interaction_receipts")
    outcome = Coordinator(store).apply("i", "Prepare", "k")
    assert outcome.outcome == "backend_error"
    assert "plugins.career.db" in outcome.error_message
