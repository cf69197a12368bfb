"""The front: a client sees what it sees of a server alone, but earlier."""

from __future__ import annotations

import os
import threading
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ClientCapabilities, Implementation
from pydantic import ValidationError
from support.conversations import INITIALIZE
from support.fronts import (
    LISTS,
    Client,
    ManyPlugin,
    line,
    messages,
    new_host,
    snapshot_of,
    stored,
    unordered,
)
from support.hosts import MakeHost
from support.http import MODERN
from support.waiting import WAIT, until

from standards_mcp.server import handlers
from standards_mcp.server.server import build_server
from standards_mcp.server.snapshotting import offered_results
from standards_mcp.server.stdio import serve_stdio
from standards_mcp.start.front import Front

VERSIONS = ("2024-11-05", "2025-06-18", "2025-11-25", "1999-01-01")


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "MAX_PAGE_BYTES", 2)
    monkeypatch.setattr(handlers, "definition_bytes", lambda _: 1)


def legacy(number: int) -> st.SearchStrategy[bytes]:
    extra = st.sampled_from(
        [
            {},
            {"cursor": "2"},
            {"cursor": "0"},
            {"cursor": "x"},
            {"cursor": 7},
            {"_meta": {"progressToken": 5}},
            {"_meta": {"other": 1}},
            {"_meta": MODERN},
        ]
    )
    handshakes = st.builds(
        lambda version, capabilities, more: line(
            "initialize",
            number,
            **INITIALIZE | {"protocolVersion": version, "capabilities": capabilities} | more,
        ),
        st.sampled_from(VERSIONS),
        st.sampled_from([{}, {"roots": {"listChanged": True}}, {"sampling": {}}, {"roots": 3}]),
        st.sampled_from([{}, {"clientInfo": {"name": "x"}}, {"clientInfo": None}]),
    )
    lists = st.builds(
        lambda method, params: line(method, number, **params), st.sampled_from(LISTS), extra
    )
    others = st.sampled_from(
        [
            line("ping", number),
            line("server/discover", number, _meta=MODERN),
            line("server/discover", number),
            line("tools/call", number, name="tool_0", arguments={"number": number}),
            line("tools/list", f"text {number}"),
            line("no/such", number),
            line("notifications/initialized"),
            b"not json",
            b"[]",
            b"",
            b'{"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}',
            b'{"jsonrpc": "1.0", "id": 3, "method": "tools/list"}',
            b'{"jsonrpc": "2.0", "id": 4, "result": {}}',
        ]
    )
    return st.one_of(handshakes, lists, lists, others)


conversations = st.integers(1, 8).flatmap(
    lambda count: st.tuples(*(legacy(100 + number) for number in range(count)))
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@given(lines=conversations, opens=st.booleans(), data=st.data())
def test_a_client_sees_the_messages_of_a_server_without_a_front(
    lines: tuple[bytes, ...], opens: bool, data: st.DataObject
):
    start = [line("initialize", 0, **INITIALIZE), line("notifications/initialized")] * opens
    conversation = [*start, *lines]
    early = data.draw(st.integers(0, len(conversation)))

    async def both() -> tuple[list[str], list[str]]:
        results = await stored(new_host())
        alone = await messages(new_host(), conversation, None)
        with_front = await messages(new_host(), conversation, results, early)
        return unordered(alone), unordered(with_front)

    alone, with_front = anyio.run(both)
    assert with_front == alone


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_handshake_and_all_pages_are_answered_before_the_server_is_loaded(
    make_host: MakeHost, version: str
):
    host = make_host({"many": ManyPlugin})
    client = Client()
    front = Front(snapshot_of(await stored(host)), client, client.writer)
    client.send(
        [
            line("initialize", 1, **INITIALIZE | {"protocolVersion": version}),
            line("tools/list", 2),
            line("tools/list", "three", cursor="2"),
            *(line(method, method) for method in LISTS[1:]),
            line("tools/call", 9, name="tool_0", arguments={}),
        ]
    )
    assert list(front.answered) == [1, 2, "three", *LISTS[1:]]
    front.start(lambda _: True)
    assert front.first_list is not None
    texts = [message["result"] for message in client.close()]
    assert texts[0]["protocolVersion"] == version
    assert [len(texts[1]["tools"]), len(texts[2]["tools"])] == [2, 1]


@pytest.mark.anyio
async def test_requests_of_2026_07_28_are_answered_without_a_handshake(make_host: MakeHost):
    client = Client()
    front = Front(snapshot_of(await stored(make_host({"many": ManyPlugin}))), client, client.writer)
    client.send([line("server/discover", 1, _meta=MODERN), line("tools/list", 2, _meta=MODERN)])
    client.send([line("initialize", 3, **INITIALIZE), line("prompts/list", 4, _meta=MODERN)])
    assert list(front.answered) == [1, 2], "a client that changes its mind is left to the server"
    front.start(lambda _: True)
    client.close()


@pytest.mark.anyio
async def test_a_repeated_id_is_left_to_the_server_and_answered_once_each(make_host: MakeHost):
    host = make_host({"many": ManyPlugin})
    lines = [
        line("initialize", 1, **INITIALIZE),
        line("prompts/list", 2),
        line("tools/call", 2, name="tool_0", arguments={"number": 5}),
    ]
    found = await messages(host, lines, await stored(host), early=3)
    assert [message["id"] for message in found] == [1, 2, 2]
    assert "content" in found[2]["result"]


@pytest.mark.anyio
async def test_lists_that_have_changed_are_announced(make_host: MakeHost):
    before = await stored(make_host({"many": ManyPlugin}))
    now = make_host({"many": type("FewPlugin", (ManyPlugin,), {"count": 1})})
    lines = [
        line("initialize", 1, **INITIALIZE),
        line("notifications/initialized"),
        line("tools/list", 2),
        line("prompts/list", 3),
        line("ping", 4),
    ]
    found = await messages(now, lines, before, early=4)
    notices = [message["method"] for message in found if "method" in message]
    assert notices == ["notifications/tools/list_changed"]


@pytest.mark.anyio
async def test_a_client_that_initializes_late_hears_of_a_change_too(make_host: MakeHost):
    before = await stored(make_host({"many": ManyPlugin}))
    now = make_host({"many": type("FewPlugin", (ManyPlugin,), {"count": 1})})
    lines = [line("initialize", 1, **INITIALIZE), line("tools/list", 2), line("ping", 3)]
    client = Client()
    front = Front(snapshot_of(before), client, client.writer)
    client.send(lines[:2])
    server = build_server(now, "1")
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: serve_stdio(server, front, on_stale=server.report_stale))
            await anyio.to_thread.run_sync(client.send, lines[2:])
            await until(lambda: b'"id":3' in client.received)
            await anyio.to_thread.run_sync(client.send, [line("notifications/initialized")])
            await until(lambda: b"tools/list_changed" in client.received)
            await anyio.to_thread.run_sync(client.leave)
    client.close()


@pytest.mark.anyio
async def test_a_stream_of_changes_begins_with_a_list_that_was_stale(make_host: MakeHost):
    before = await stored(make_host({"many": ManyPlugin}))
    now = make_host({"many": type("FewPlugin", (ManyPlugin,), {"count": 1})})
    client = Client()
    front = Front(snapshot_of(before), client, client.writer)
    client.send([line("tools/list", 1, _meta=MODERN)])
    listen = line("subscriptions/listen", 2, _meta=MODERN, notifications={"toolsListChanged": True})
    server = build_server(now, "1")
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: serve_stdio(server, front, on_stale=server.report_stale))
            await anyio.to_thread.run_sync(client.send, [listen])
            await until(lambda: b"tools/list_changed" in client.received)
            await anyio.to_thread.run_sync(client.leave)
    client.close()


@pytest.mark.anyio
async def test_nothing_is_answered_from_an_empty_snapshot(make_host: MakeHost):
    host = make_host({"many": ManyPlugin})
    lines = [line("initialize", 1, **INITIALIZE), line("prompts/list", 2)]
    found = await messages(host, lines, {}, early=2)
    assert [message["id"] for message in found] == [1, 2]


def test_a_client_that_has_gone_ends_no_start():
    client = Client()
    os.close(client.writer)
    front = Front(snapshot_of({"2025-11-25 initialize": b"{}"}), client, client.writer)
    client.send([line("initialize", 1, **INITIALIZE), line("tools/list", 2)])
    front.start(lambda _: True)
    assert front.first_list is None


@pytest.mark.anyio
async def test_a_client_may_send_much_before_it_reads(make_host: MakeHost):
    """The front goes on to read while the client's pipe is full."""
    results = await stored(make_host({"many": ManyPlugin}))
    source, (answers, wire) = Client(), os.pipe()
    front = Front(snapshot_of(results), source, wire)
    lists = [line("tools/list", number) for number in range(2, 1000)]
    with anyio.fail_after(WAIT):
        await anyio.to_thread.run_sync(source.send, [line("initialize", 1, **INITIALIZE), *lists])
        handing_over = threading.Thread(target=front.start, args=(lambda _: True,))
        handing_over.start()
        received = bytearray()
        while received.count(b"\n") < 999:
            received += await anyio.to_thread.run_sync(os.read, answers, 1 << 16)
        await anyio.to_thread.run_sync(handing_over.join)
    os.close(answers)
    os.close(wire)
    source.close()


@pytest.mark.anyio
async def test_the_own_sessions_of_the_server_are_no_listing(make_host: MakeHost):
    server = build_server(make_host({"many": ManyPlugin}), "1")
    await offered_results(server)
    assert not server.listed.is_set()
    assert server.first_list is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["listChanged", "form", "tools", "requests", "x"]), inner, max_size=2
        )
    ),
    max_leaves=6,
)
capabilities = st.dictionaries(
    st.sampled_from(["roots", "sampling", "elicitation", "experimental", "extensions", "tasks"]),
    json_values,
    max_size=3,
)
clients = st.dictionaries(
    st.sampled_from(["name", "version", "title", "websiteUrl", "icons", "description"]),
    json_values,
    max_size=4,
).map(lambda fields: {"name": "n", "version": "1"} | fields)


@given(client=clients, abilities=capabilities)
def test_every_handshake_that_the_front_accepts_is_valid(
    client: dict[str, Any], abilities: dict[str, Any]
):
    source = Client()
    front = Front(snapshot_of({"2025-11-25 initialize": b"{}"}), source, source.writer)
    try:
        params = INITIALIZE | {"clientInfo": client, "capabilities": abilities}
        source.send([line("initialize", 1, **params)])
        if front.answered:
            try:
                Implementation.model_validate(client)
                ClientCapabilities.model_validate(abilities)
            except ValidationError as exc:  # pragma: no cover
                pytest.fail(str(exc))
    finally:
        front.start(lambda _: True)
        source.close()
