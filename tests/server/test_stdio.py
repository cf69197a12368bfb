"""The server on two pipes, without a process: all requests are answered before the end."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest
from support.conversations import INITIALIZE, conversation, request
from support.hosts import MakeHost
from support.http import MODERN

from standards_mcp import Plugin, Tool, hookimpl
from standards_mcp._utils.lines import MAX_LINE
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio


class NapPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        async def nap(seconds: float = 0, answer: int = 1) -> str:
            await anyio.sleep(seconds)
            return "z" * answer

        return [Tool(name="nap", description="Nap", function=nap)]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host({"nap": NapPlugin})


def nap(number: int, **arguments: Any) -> bytes:
    return request(number, "tools/call", name="nap", arguments=arguments)


def given_up(caplog: pytest.LogCaptureFixture) -> list[int]:
    return [vars(r)["requests"] for r in caplog.records if "not answered in time" in r.getMessage()]


@pytest.mark.slow
async def test_requests_in_flight_at_the_end_of_input_are_answered(
    host: Host, caplog: pytest.LogCaptureFixture
):
    found = await conversation(host, *(nap(number, seconds=1) for number in range(1, 51)))
    assert all("result" in answer for answer in found.values())
    assert found.keys() == set(range(51))
    assert given_up(caplog) == []


async def test_answers_are_written_to_a_client_that_takes_its_time_to_read(host: Host):
    calls = (nap(number, answer=70_000) for number in range(1, 31))
    found = await conversation(host, *calls, pause=1)
    assert {len(found[n]["result"]["content"][0]["text"]) for n in range(1, 31)} == {70_000}


async def test_requests_without_an_answer_are_dropped_and_counted_in_the_log(
    host: Host, caplog: pytest.LogCaptureFixture
):
    calls = [nap(1, seconds=3600), nap(2), nap(3, seconds=3600)]
    found = await conversation(host, *calls, drain_seconds=0.5, until=2)
    assert "result" in found[2]
    assert [found[number]["error"]["message"] for number in (1, 3)] == ["Connection closed"] * 2
    assert given_up(caplog) == [2]


async def test_nothing_waits_for_a_request_that_the_client_cancelled(
    host: Host, caplog: pytest.LogCaptureFixture
):
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    found = await conversation(
        host, nap(1, seconds=3600), json.dumps(cancel).encode() + b"\n", nap(2), drain_seconds=3600
    )
    assert found.keys() == {0, 2}
    assert given_up(caplog) == []


async def test_requests_that_fail_count_as_answered_and_the_log_hides_a_refused_line(
    host: Host, caplog: pytest.LogCaptureFixture
):
    nonsense = b'{"password": "hunter2"\n'
    lines = [request(1, "no/such/method"), request(2, "tools/call", name="unknown"), nonsense]
    answers = await conversation(host, *lines, b"\n", b"  \r\n", drain_seconds=3600)
    codes = {number: answers[number]["error"]["code"] for number in (1, 2, None)}
    assert codes == {1: -32601, 2: -32602, None: -32700}
    refused = [record for record in caplog.records if record.getMessage() == "a line was refused"]
    assert [record.levelno for record in refused] == [logging.WARNING]
    assert vars(refused[0])["reason"].startswith("the line is not JSON (Expecting ',' delimiter")
    assert "hunter2" not in str(vars(refused[0]))


async def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_served(host: Host):
    found = await conversation(host, nap(1), b"x" * (MAX_LINE + 1) + b"\n", nap(2))
    assert found.keys() == {0, 1, 2, None}
    assert found[None]["error"]["code"] == -32600
    assert f"at most {MAX_LINE} bytes" in found[None]["error"]["message"]


async def test_the_error_without_a_handshake_names_initialize(host: Host):
    incomplete = {key: INITIALIZE[key] for key in INITIALIZE if key != "protocolVersion"}
    answers = await conversation(
        host,
        request(1, "tools/list"),
        request(2, "tools/call", name="nap"),
        request(3, "initialize", **incomplete),
        request(4, "initialize", **INITIALIZE | {"protocolVersion": 5}),
        request(5, "ping"),
        request(6, "nosuch"),
        request(7, "initialize", **INITIALIZE),
        request(8, "tools/list"),
        opens=False,
    )
    said = {number: answers[number]["error"]["message"] for number in (1, 2, 3, 4, 6)}
    assert said[1].startswith("tools/list before initialize: this connection has no handshake yet")
    assert said[2].startswith("tools/call before initialize: ")
    for number in (3, 4):
        assert said[number].startswith("initialize needs protocolVersion (such as '2025-11-25')")
    assert said[6] == "Method not found"
    assert answers[5]["result"] == {}
    assert answers[8]["result"]["tools"]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_version_is_served(host: Host, version: str):
    opening = request(1, "initialize", **INITIALIZE | {"protocolVersion": version})
    answers = await conversation(host, opening, request(2, "tools/list"), opens=False)
    assert answers[1]["result"]["protocolVersion"] == version
    assert [tool["name"] for tool in answers[2]["result"]["tools"]] == ["nap"]


async def test_the_2026_generation_needs_no_handshake(host: Host):
    answers = await conversation(
        host,
        request(1, "server/discover", _meta=MODERN),
        request(2, "tools/call", name="nap", arguments={}, _meta=MODERN),
        request(3, "tools/call", name="nonsense", arguments={}, _meta=MODERN),
        opens=False,
    )
    assert answers[1]["result"]["supportedVersions"] == ["2026-07-28"]
    assert answers[2]["result"]["content"][0]["text"] == "z"
    assert answers[3]["error"]["code"] == -32602
