"""Damaged and forged data in Redis and in the database: refused, named, and never passed on."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis

from standards_mcp_career.addresses import RedisAddress
from standards_mcp_career.database import Store
from standards_mcp_career.interactions import Coordinator, Position, position_of
from standards_mcp_career.redis_coordinator import RedisCoordinator

KEY = "standards-mcp:career:interaction:i"
READY = {"state": "1", "index": "1"}


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Serve what speaks as a Redis does, and answers every script in one way."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while header := self.rfile.readline():
                words = [
                    self.rfile.read(int(self.rfile.readline()[1:]) + 2)
                    for _ in range(int(header[1:]))
                ]
                self.wfile.write(answer if words[0].startswith(b"EVAL") else b"+OK\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def receipt(event: str = "Prepare", state: object = 1, index: object = 1) -> str:
    return json.dumps({"event": event, "state": state, "index": index})


@pytest.mark.usefixtures("interaction")
@pytest.mark.parametrize(
    ("held", "what"),
    [
        ({"state": "99", "index": "7"}, "state"),
        ({"state": "-1", "index": "1"}, "state"),
        ({"state": "1.5", "index": "1"}, "state"),
        ({"state": "nan", "index": "1"}, "state"),
        ({"state": "1", "index": "1e300"}, "state"),
        ({"state": "x", "index": "1"}, "state"),
        ({"state": "1"}, "state"),
        ({**READY, "receipt:k": receipt(state=99, index=7)}, "receipt"),
        ({**READY, "receipt:k": receipt(state=3)}, "receipt"),
        ({**READY, "receipt:k": receipt(index=7)}, "receipt"),
        ({**READY, "receipt:k": receipt("Close", 4, 1)}, "receipt"),
        ({**READY, "receipt:k": receipt("Prepare", None)}, "receipt"),
        ({**READY, "receipt:k": receipt("Launch")}, "receipt"),
        ({**READY, "receipt:k": receipt(index="x")}, "receipt"),
        ({**READY, "receipt:k": "{"}, "receipt"),
        ({**READY, "receipt:k": "[]"}, "receipt"),
        ({**READY, "receipt:k": "7"}, "receipt"),
    ],
)
def test_what_no_event_can_have_led_to_is_refused_and_not_written_to_the_database(
    coordinator: Coordinator,
    redis_address: str,
    store: Store,
    held: dict[str, str],
    what: str,
):
    with Redis.from_url(redis_address) as client:
        client.hset(KEY, mapping=held)
        for event in ("Prepare", "Close"):
            outcome = coordinator.apply("i", event, "k")
            assert outcome.outcome == "backend_error"
            assert f"a damaged {what} of interaction i" in outcome.error_message
            assert f"delete the key {KEY}" in outcome.error_message
        assert client.hgetall(KEY) == {name.encode(): text.encode() for name, text in held.items()}
    with store.reading() as connection:
        assert position_of(connection, "i") == Position(0, 0)


@pytest.mark.usefixtures("interaction")
@pytest.mark.parametrize(
    "answer",
    [
        b"*4\r\n$7\r\napplied\r\n:0\r\n:99\r\n:7\r\n",
        b"*4\r\n$7\r\napplied\r\n:0\r\n:3\r\n:1\r\n",
        b"*4\r\n$15\r\nalready_applied\r\n:9\r\n:1\r\n:1\r\n",
        b"*4\r\n$7\r\napplied\r\n:0\r\n$1\r\n1\r\n:1\r\n",
        b"*2\r\n$7\r\napplied\r\n:0\r\n",
        b"*4\r\n$8\r\nlaunched\r\n:0\r\n:1\r\n:1\r\n",
        b"*1\r\n$13\r\nbackend_error\r\n",
        b":7\r\n",
        b"$-1\r\n",
    ],
)
def test_an_answer_that_the_script_cannot_give_is_refused_and_not_written_to_the_database(
    store: Store, answer: bytes
):
    with answering(answer) as port:
        coordinator = RedisCoordinator(store, RedisAddress.parse(f"redis://127.0.0.1:{port}"))
        outcome = coordinator.apply("i", "Prepare", "k")
        coordinator.close()
    assert outcome.outcome == "backend_error"
    assert "not another program" in outcome.error_message
    with store.reading() as connection:
        assert position_of(connection, "i") == Position(0, 0)


@pytest.mark.usefixtures("interaction")
def test_a_key_that_holds_something_else_is_told_with_the_next_step(
    coordinator: Coordinator, redis_address: str
):
    with Redis.from_url(redis_address) as client:
        client.set(KEY, "text")
        outcome = coordinator.apply("i", "Prepare", "k")
        assert (outcome.outcome, "WRONGTYPE" in outcome.error_message) == ("backend_error", True)
        client.delete(KEY)
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"


@pytest.mark.usefixtures("interaction")
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE interactions SET state = 99", "state"),
        ("UPDATE interactions SET state = 'x'", "state"),
        ("UPDATE interactions SET transition_index = -1", "state"),
        ("UPDATE interaction_receipts SET after_state = 99", "receipt"),
        ("UPDATE interaction_receipts SET after_state = 'x'", "receipt"),
        ("UPDATE interaction_receipts SET transition_index = 'x'", "receipt"),
        ("UPDATE interaction_receipts SET event = 'Launch'", "receipt"),
    ],
)
def test_a_damaged_database_is_told_with_the_next_step(store: Store, statement: str, what: str):
    coordinator = Coordinator(store)
    assert coordinator.apply("i", "Prepare", "k").outcome == "applied"
    with store.writing() as connection:
        connection.execute(statement)
    outcome = coordinator.apply("i", "Prepare", "k")
    assert outcome.outcome == "backend_error"
    assert f"a damaged {what} of interaction i" in outcome.error_message
    assert "backup" in outcome.error_message
