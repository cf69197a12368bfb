"""The whole program as a client starts it: a process and its pipes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support.conversations import INITIALIZE, request
from support.hosts import Install
from support.http import MODERN
from support.marks import WARNING
from support.peer import COMMAND, WAIT, Peer

pytestmark = pytest.mark.processes

NOISY = """
    import asyncio, atexit, os, subprocess, sys, threading, time
    from standards_mcp import Plugin, Tool, hookimpl

    def noise(where):
        print("print", where)
        sys.stdout.write("unflushed")
        os.write(1, b"raw\\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"])

    noise("at import")
    atexit.register(print, "at exit")

    class NoisyPlugin(Plugin):
        @hookimpl
        def register_tools(self):
            noise("in a hook")

            def shout(seconds: float = 0) -> str:
                noise("in a call")
                time.sleep(seconds)
                return "done"

            async def offload(seconds: float) -> None:
                await asyncio.to_thread(time.sleep, seconds)

            def modules() -> list[str]:
                return sorted(sys.modules)

            return [
                Tool(name="shout", description="Shout", function=shout),
                Tool(name="offload", description="Shout elsewhere", function=offload),
                Tool(name="modules", description="List modules", function=modules),
            ]
"""

Start = Callable[..., Peer]


@pytest.fixture
def start(starter_catalog: Path) -> Generator[Start]:
    """Return a function that starts the program on a catalog that all tests share."""
    del starter_catalog  # only to be the configured one
    peers: list[Peer] = []

    def begin(*arguments: str) -> Peer:
        peers.append(Peer(*arguments))
        return peers[-1]

    yield begin
    for peer in peers:
        peer.kill()


@pytest.fixture
def peer(start: Start) -> Generator[Peer]:
    """A process after the handshake, which ends without an error."""
    peer = start()
    peer.initialize()
    yield peer
    assert peer.end() == 0


def content(answer: dict[str, Any]) -> dict[str, Any]:
    result = answer["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


@pytest.mark.smoke
@pytest.mark.measured
def test_both_tools_answer_on_raw_lines(start: Start):
    peer = start("serve")
    peer.initialize()
    peer.send("tools/list", number=3)
    tools = peer.answer()["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["get_standard_details", "find_relevant_standards"]
    for tool in tools:
        assert tool["annotations"]["readOnlyHint"] is tool["annotations"]["idempotentHint"] is True
        assert tool["annotations"]["openWorldHint"] is False
        assert tool["_meta"]["standards-mcp/untrusted-text"] is True
        assert tool["description"].endswith(WARNING)
    peer.call(1, "find_relevant_standards", activity="comparing fractions", max_results=3)
    found = content(peer.answer())
    assert found["message"].startswith("Found 3 matching standards")
    peer.call(2, "get_standard_details", standard_id=found["results"][0]["statement_notation"])
    details = content(peer.answer())
    assert details["results"][0]["_id"] == found["results"][0]["_id"]
    assert peer.end() == 0


@pytest.mark.smoke
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.usefixtures("start")
async def test_the_sdk_client_uses_both_tools(mode: str):
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))
    async with Client(parameters, mode=mode) as client:
        found = await client.call_tool(
            "find_relevant_standards",
            {"activity": "folding paper strips into equal parts", "grade": "3rd grade"},
        )
        assert not found.is_error
        assert found.structured_content["results"][0]["education_levels"] == ["03"]
        details = await client.call_tool("get_standard_details", {"standard_id": "3.nf.1"})
        result = details.structured_content["results"][0]
        assert result["statement_notation"] == "CCSS.Math.Content.3.NF.A.1"
        missing = await client.call_tool("get_standard_details", {"standard_id": "3.NF.Z.99"})
        assert missing.is_error
        assert missing.structured_content["error_type"] == "not_found"


def test_an_invalid_line_gets_an_error_and_the_next_one_is_served(start: Start):
    peer = start()
    wrong = [
        (b"not json", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 5000, -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc": "1.0", "id": 3}', -32600, 3),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
    ]
    for line, code, number in wrong:
        peer.write(line + b"\n\n")
        answer = peer.answer()
        assert (answer["error"]["code"], answer.get("id")) == (code, number)
    half_an_emoji = "counting pizzas \ud83c"
    arguments = {"activity": half_an_emoji, "max_results": 1}
    params = {"name": "find_relevant_standards", "arguments": arguments, "_meta": MODERN}
    peer.send("tools/call", params, 9)
    assert content(peer.answer())["success"] is True
    assert peer.end() == 0
    refused = [event for event in peer.events() if event["event"] == "a line was refused"]
    assert len(refused) == len(wrong)


@pytest.mark.smoke
def test_stdout_carries_only_json_rpc_while_a_plugin_prints(start: Start, install: Install):
    install("noisy", NOISY)
    peer = start()
    peer.initialize()
    peer.call(1, "shout")
    assert peer.answer()["result"]["content"][0]["text"] == "done"
    assert peer.end() == 0
    for text in ("print at import", "print in a hook", "print in a call", "raw", "from a child"):
        assert text in peer.log()


@pytest.mark.parametrize("backend", ["local", "pinecone"])
def test_before_a_call_needs_it_nothing_heavy_is_imported_and_pinecone_not_asked(
    start: Start, install: Install, monkeypatch: pytest.MonkeyPatch, backend: str
):
    install("noisy", NOISY)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        if backend == "pinecone":
            host = f"http://127.0.0.1:{listening.getsockname()[1]}"
            monkeypatch.setenv("PINECONE_API_KEY", "pcsk_fake")
            monkeypatch.setenv("PINECONE_HOST", host)
            monkeypatch.setenv("PINECONE_CONTROLLER_HOST", host)
        peer = start()
        peer.initialize()
        peer.send("tools/list", number=1)
        peer.answer()
        peer.call(2, "modules")
        modules = set(json.loads(peer.answer()["result"]["content"][0]["text"])["result"])
        assert not modules & {"jinja2", "numpy", "onnxruntime", "pinecone", "tantivy", "tokenizers"}
        assert peer.end() == 0
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
    (started,) = [event for event in peer.events() if event["event"] == "started"]
    catalog = started["services"]["Catalog"]
    assert catalog["backend"] == backend
    if backend == "pinecone":
        assert catalog == {
            "backend": "pinecone",
            "reason": '[plugins.catalog] backend = "auto", and PINECONE_API_KEY is set',
            "index": "common-core-standards",
        }


@pytest.mark.smoke
@pytest.mark.measured
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_while_a_call_is_running(
    start: Start, install: Install, number: signal.Signals
):
    install("noisy", NOISY)
    peer = start()
    peer.initialize()
    peer.call(1, "shout", seconds=60)
    peer.wait_for_log("print in a call")
    peer.process.send_signal(number)
    assert peer.process.wait(WAIT) == 0
    assert peer.end() == 0


def test_a_client_that_vanishes_mid_call_leaves_no_process_behind(start: Start, install: Install):
    install("noisy", NOISY)
    del start  # only for its catalog
    shout = request(2, "tools/call", name="shout", arguments={"seconds": 9})
    pipe, command = subprocess.PIPE, [*COMMAND, "--set", "tools.timeout=1"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        process.stdin.write(request(1, "initialize", **INITIALIZE) + shout + request(3, "ping"))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        assert process.wait(WAIT) == 0


def test_a_tool_that_overruns_its_deadline_is_a_timeout_and_does_not_hold_up_the_end(
    start: Start, install: Install
):
    install("noisy", NOISY)
    peer = start("--set", "tools.timeout=0.2")
    peer.initialize()
    peer.call(1, "offload", seconds=3 * WAIT)
    assert content(peer.answer())["error_type"] == "timeout"
    assert peer.end() == 0


BROKEN = {
    "importing": "raise RuntimeError('not today')",
    "startless": """
        from standards_mcp import Plugin, hookimpl

        class StartlessPlugin(Plugin):
            @hookimpl
            def lifespan(self):
                raise ConnectionError("no")
    """,
}


@pytest.mark.measured
@pytest.mark.parametrize(
    ("name", "setting", "reason"),
    [
        ("importing", "strict=true", "RuntimeError: not today"),
        (
            "startless",
            "plugins.startless.required=true",
            "its lifespan failed: ConnectionError: no",
        ),
    ],
)
def test_a_failure_that_matters_ends_the_process_with_one_line(
    start: Start, install: Install, name: str, setting: str, reason: str
):
    install(name, BROKEN[name])
    peer = start("--set", setting)
    assert peer.end() == 1
    lines = [line for line in peer.log().splitlines() if line.startswith("standards-mcp: ")]
    assert [line.partition(" failed: ")[2] for line in lines] == [reason], peer.log()


@pytest.mark.measured
def test_the_log_has_a_line_for_the_start_and_for_each_call(start: Start):
    peer = start("-v", "serve")
    peer.initialize()
    arguments = {"activity": "sorting shapes", "max_results": 2}
    peer.call(1, "find_relevant_standards", **arguments)
    peer.answer()
    assert peer.end() == 0
    events = {event["event"]: event for event in peer.events()}
    started, called = events["started"], events["tool call"]
    assert started["plugins"] == dict.fromkeys(("catalog", "lookup", "search"), "started")
    assert started["tools"] == ["get_standard_details", "find_relevant_standards"]
    assert started["services"]["Catalog"]["backend"] == "local"
    assert started["milliseconds"] > 0
    assert (called["tool"], called["plugin"]) == ("find_relevant_standards", "search")
    assert (called["outcome"], called["results"]) == ("ok", 2)
    assert called["duration_ms"] > 0
    assert called["arguments"] == arguments
