"""The whole program answers first requests from the snapshot of its last start."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from support.command_line import data, run
from support.peer import COMMAND, Peer, store_snapshot
from support.waiting import until, wait_until

from standards_mcp.start.launch import Launch

pytestmark = [pytest.mark.processes, pytest.mark.slow]

GREETER = """
    from standards_mcp import Plugin, Tool, hookimpl

    class GreeterPlugin(Plugin):
        @hookimpl
        def register_tools(self):
            def greet(name: str = "you") -> str:
                return f"Hello, {{name}}."

            return [Tool(name={name!r}, description="Greet.", function=greet, read_only=True)]
"""
BARE = (
    "plugins.catalog.enabled = false\nplugins.lookup.enabled = false\n"
    "plugins.search.enabled = false\n"
)


@pytest.fixture(autouse=True, name="greeter")
def _greeter(install) -> Path:
    Path("standards-mcp.toml").write_text(BARE, encoding="utf-8")
    return install("greeter", GREETER.format(name="greet"))


@pytest.fixture
def serve() -> Iterator[Callable[[], Peer]]:
    """Return a function that starts a server over stdio."""
    peers: list[Peer] = []

    def begin() -> Peer:
        peers.append(Peer())
        return peers[-1]

    yield begin
    for peer in peers:
        peer.kill()


def has_snapshot() -> bool:
    return Launch(()).last_note() is not None


def started(log: str) -> dict[str, int]:
    return next(
        fields for text in log.splitlines() if (fields := json.loads(text))["event"] == "started"
    )


def test_the_second_start_answers_before_it_has_loaded_and_serves_all_the_same(
    serve: Callable[[], Peer],
):
    store_snapshot()
    peer = serve()
    assert peer.initialize()["serverInfo"]["name"] == "standards-mcp"
    assert peer.tool_names() == ["greet"]
    peer.call(7, "greet", name="Ada")
    assert peer.answers(1)[7]["result"]["content"][0]["text"] == "Hello, Ada."
    wait_until(lambda: Launch(()).last_note() == "")
    assert peer.end() == 0
    fields = started(peer.log())
    assert fields["first_list_milliseconds"] < fields["milliseconds"]
    (finding,) = [each for each in data("doctor") if each["subject"] == "snapshot"]
    assert finding["message"] == "the last start was answered from it"


def test_the_search_for_tools_is_listed_at_both_starts(serve: Callable[[], Peer]):
    config = f'{BARE}[tools]\ndiscovery = "search"\n'
    Path("standards-mcp.toml").write_text(config, encoding="utf-8")
    Launch(()).remove_snapshot()
    for note in ("there was no snapshot", ""):
        peer = serve()
        peer.initialize()
        assert peer.tool_names() == ["search_tools", "call_tool"]
        peer.call(7, "call_tool", name="greet", arguments={"name": "Ada"})
        assert peer.answers(1)[7]["result"]["content"][0]["text"] == "Hello, Ada."
        wait_until(lambda note=note: Launch(()).last_note() == note)
        assert peer.end() == 0


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdk_client_gets_the_same_answers_from_a_snapshot(mode: str):
    async def answers(*options: str, note: str | None) -> list[object]:
        arguments = [*COMMAND[1:], *options]
        parameters = StdioServerParameters(command=COMMAND[0], args=arguments, env={**os.environ})
        async with Client(parameters, mode=mode) as client:
            results = [
                await client.list_tools(),
                await client.list_prompts(),
                await client.list_resources(),
                await client.list_resource_templates(),
                await client.call_tool("greet", {"name": "Ada"}),
            ]
            await until(lambda: Launch(()).last_note() == note)
            return [client.server_capabilities, client.instructions, results]

    await anyio.to_thread.run_sync(store_snapshot)
    alone = await answers("--set", "server.snapshot=false", note="there was no snapshot")
    assert await answers(note="") == alone


def test_a_plugin_that_was_edited_meanwhile_is_served_as_it_is_now(
    greeter: Path, serve: Callable[[], Peer]
):
    store_snapshot()
    code = greeter.read_text(encoding="utf-8")
    greeter.write_text(code.replace("'greet'", "'welcome'"), encoding="utf-8")
    peer = serve()
    peer.initialize()
    assert peer.tool_names() == ["welcome"]
    reason = "since the last start, installed packages changed"
    wait_until(lambda: Launch(()).last_note() == reason)
    assert peer.end() == 0


def test_a_plugin_that_was_removed_is_not_listed(greeter: Path, serve: Callable[[], Peer]):
    store_snapshot()
    (metadata,) = greeter.parent.glob("*greeter*.dist-info")
    metadata.rename(metadata.with_suffix(".gone"))
    peer = serve()
    peer.initialize()
    assert peer.tool_names() == []
    peer.end()


def test_a_start_that_fails_ends_as_ever_although_the_lists_were_answered(
    greeter: Path, serve: Callable[[], Peer]
):
    Path("standards-mcp.toml").write_text(f"strict = true\n{BARE}", encoding="utf-8")
    code = greeter.read_text(encoding="utf-8")
    gate = Path("gate").absolute()
    raises = f"if __import__('os').path.exists({str(gate)!r}): raise RuntimeError('closed')\n"
    greeter.write_text(raises + code, encoding="utf-8")
    store_snapshot()
    gate.touch()
    peer = serve()
    peer.initialize()
    peer.send("tools/list", {}, 5)
    assert [tool["name"] for tool in peer.answers(1)[5]["result"]["tools"]] == ["greet"]
    assert peer.process.wait(60) == 1
    assert "closed" in peer.log()


def test_the_setting_switches_snapshots_off(serve: Callable[[], Peer]):
    Path("standards-mcp.toml").write_text(f"{BARE}server.snapshot = false\n", encoding="utf-8")
    peer = serve()
    peer.initialize()
    assert peer.tool_names() == ["greet"]
    time.sleep(1)
    assert peer.end() == 0
    assert not has_snapshot()
    (finding,) = [each for each in data("doctor") if each["subject"] == "snapshot"]
    assert finding["message"] == "off, by [server] snapshot = false"


def test_help_is_the_same_with_and_without_a_snapshot():
    first = run("--help").output
    assert Launch(()).commands() is not None
    assert run("--help").output == first
    assert "search" not in first or "Commands:" in first
