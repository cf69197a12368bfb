"""A configuration that changes while the server runs."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import threading
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest
from support.conversations import INITIALIZE
from support.hosts import MakeHost, served
from support.peer import Peer
from support.waiting import WAIT, let_time_pass, until

from standards_mcp import (
    Filter,
    FilterExpression,
    Plugin,
    Tool,
    ToolCall,
    ToolHandler,
    ToolResult,
    hookimpl,
)
from standards_mcp.calls.context import Principal
from standards_mcp.config.loading import FILE_NAME, LoadedSettings, Sources, load_settings
from standards_mcp.contributions.selection import Access, Selection
from standards_mcp.errors import ConfigError
from standards_mcp.host import Host
from standards_mcp.server import reload as reloading
from standards_mcp.server.reload import (
    ReloadOptions,
    ReloadResult,
    apply_settings,
    reload_on_change,
)
from standards_mcp.server.server import build_server

pytestmark = pytest.mark.anyio
QUIET = f'state_dir = {json.dumps("state")}\ntrusted = ["standards-mcp"]\n'


async def work(seconds: float = 0, text: str = "") -> dict[str, str]:
    await anyio.sleep(seconds)
    return {"text": text}


class WorkPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [
            Tool(name=name, description="Work.", function=work, read_only=True)
            for name in ("work", "web.get")
        ]


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host({"acme": WorkPlugin, "off": Plugin}, plugins={"off": {"enabled": False}})


def loaded(host: Host, text: str) -> LoadedSettings:
    state = json.dumps(str(host.settings.state_dir))
    Path(FILE_NAME).write_text(f"state_dir = {state}\n{text}")
    return load_settings()


def test_a_change_for_some_principals_only_is_announced(make_host: MakeHost):
    plain = "[profiles.teachers]\nplugins = [%r]"
    host = make_host({"work": WorkPlugin}, profiles={"teachers": {"plugins": ["work"]}})
    teacher = Principal("teacher", Access(profiles=("teachers",)))
    assert host.visible(teacher).visible_tools
    done = apply_settings(host, loaded(host, plain % "none"))
    assert host.visible(teacher).visible_tools == []
    assert "tools" in done.changed
    assert len(host.visible().visible_tools) > 0


def test_selection_and_overrides_are_taken_over(host: Host):
    text = '[tools]\ndisable = ["web.*"]\n[tools.overrides.work]\nname = "do"'
    done = apply_settings(host, loaded(host, text))
    assert done == ReloadResult(changed=("tools",), needs_restart=())
    assert served(host) == ["do"]
    assert apply_settings(host, loaded(host, "")).changed
    assert served(host) == ["work", "web_get"]
    assert not apply_settings(host, loaded(host, "[tools]\ntimeout = 3")).changed
    assert host.visible().tools[0].limits.timeout == 3


class SearchPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        async def search(filter: FilterExpression | None) -> str:  # noqa: A002
            return f"filter: {filter}"

        return [Tool(name="search", description="Work.", function=search, accepts_filters=True)]


class NarrowPlugin(Plugin):
    @hookimpl
    def register_filters(self):
        deep = {"annotation": int, "description": "How deep."}
        return [Filter(name="depth", to_expression=lambda depth: {"depth": depth}, **deep)]

    @hookimpl
    def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
        async def handle(call: ToolCall) -> ToolResult:
            result = await call_next(call)
            return replace(result, notes=("narrowed",))

        return handle


def arguments(host: Host) -> list[str]:
    return list(host.visible().tools[0].arguments.schema["properties"])


async def test_a_disabled_plugin_stays_loaded_and_its_filters_and_wrappers_go(
    make_host: MakeHost,
):
    host = make_host({"acme": SearchPlugin, "narrow": NarrowPlugin})
    for text in ("", "[plugins.narrow]\nenabled = false", ""):
        done = apply_settings(host, loaded(host, text))
        is_enabled = not text
        assert arguments(host) == (["depth"] if is_enabled else [])
        assert (await host.call_tool("search", {"depth": 1})).is_error is not is_enabled
        assert (await host.call_tool("search", {})).notes == (("narrowed",) if is_enabled else ())
        assert is_enabled or done.changed == ("tools",)
    assert apply_settings(host, loaded(host, "[plugins.acme]\nenabled = false")).changed
    assert served(host) == []
    assert host.manager.records["acme"].plugin is not None


def test_settings_that_need_a_restart_are_named(host: Host):
    text = """
        autoload = false
        [services]
        Catalog = "acme"
        [tools]
        storage = "redis://127.0.0.1/0"
        [plugins.acme]
        required = true
        [plugins.off]
        enabled = true
        isolate = true
    """
    of_plugins = ("plugins.acme", "plugins.off", "plugins.off.enabled")
    named = ("autoload", "tools.storage", "services", *of_plugins)
    assert apply_settings(host, loaded(host, text)).needs_restart == named
    assert host.settings.services == {}
    assert host.settings.tools.storage is None


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[plugins.acmee]\nenabled = false", "did you mean 'acme'?"),
        ('profile = "teacher"', "no table [profiles.teacher]"),
        ("[tools]\ndisable = 5", "[tools] disable: input should be a list"),
        (None, "standards-mcp.toml no longer exists. Restore it, or restart the server"),
    ],
    ids=["an unknown plugin", "an unknown profile", "a wrong type", "a file that is gone"],
)
def test_a_configuration_with_a_mistake_changes_nothing(host: Host, text: str | None, mistake: str):
    apply_settings(host, loaded(host, '[tools]\ndisable = ["web.*"]'))
    if text is None:
        Path(FILE_NAME).unlink()
    with pytest.raises(ConfigError) as caught:
        apply_settings(host, load_settings() if text is None else loaded(host, text))
    assert mistake in str(caught.value)
    assert served(host) == ["work"]


def count_offerings() -> int:
    return sum(isinstance(each, Selection) for each in gc.get_objects())


@pytest.mark.slow
async def test_no_call_is_lost_and_nothing_is_left_over_in_many_reloads(host: Host):
    texts = [
        "",
        '[tools.overrides.work]\nname = "do"\nconcurrency = 60\ncache_ttl = 0',
        '[tools]\ndisable = ["web.*"]\nrate_limit = "1000000/hour"',
        "[tools.overrides.work.arguments.text]\ndefault = 'x'",
    ]
    configurations = [loaded(host, text) for text in texts]
    for each in configurations:
        apply_settings(host, each)
        await host.call_tool("work", {})
    finished, answers = False, 0

    async def keep_calling() -> None:
        nonlocal answers
        while not finished:
            result = await host.call_tool("work", {"seconds": 0.001})
            assert not result.is_error, result.text
            answers += 1

    calls = [asyncio.ensure_future(keep_calling()) for _ in range(50)]
    await anyio.sleep(0.01)
    gc.collect()
    threads, offerings = {thread.name for thread in threading.enumerate()}, count_offerings()
    for number in range(200):
        apply_settings(host, configurations[number % len(configurations)])
        await anyio.lowlevel.checkpoint()
    finished = True
    await asyncio.gather(*calls)
    gc.collect()
    assert answers >= 50
    assert {thread.name for thread in threading.enumerate()} <= threads
    assert count_offerings() <= offerings + 1


async def test_clients_that_do_not_read_hold_up_a_notice_for_a_moment_only(
    host: Host, monkeypatch: pytest.MonkeyPatch
):
    # So long that one after another they would take all day.
    monkeypatch.setattr("standards_mcp.server.subscriptions._NOTICE_SECONDS", 4 * WAIT)
    server = build_server(host, "1", runs_plugins=False)
    told = asyncio.Event()

    async def hear(_: object) -> None:
        told.set()

    async def connect_and_read_no_more() -> Any:
        to_server, received = anyio.create_memory_object_stream[Any](9)
        answers, to_client = anyio.create_memory_object_stream[Any](0)
        tasks.start_soon(server.run, received, answers, server.create_initialization_options())
        first = JSONRPCRequest(jsonrpc="2.0", id=0, method="initialize", params=INITIALIZE)
        ready = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        ping = JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
        for message in (first, ready, ping):
            await to_server.send(SessionMessage(message))
        await to_client.receive()
        await to_client.receive()
        return to_server, to_client

    async with host.running(), anyio.create_task_group() as tasks:
        streams = [await connect_and_read_no_more() for _ in range(5)]
        async with Client(server, mode="legacy", message_handler=hear) as client:
            await client.list_tools()
            telling = asyncio.ensure_future(server.notify_changed(["tools", "prompts"]))
            for _ in ("tools", "prompts"):
                await anyio.wait_all_tasks_blocked()
                let_time_pass()
            with anyio.fail_after(WAIT):
                await telling
                await told.wait()
        for each in (stream for pair in streams for stream in pair):
            each.close()
        tasks.cancel_scope.cancel()


@pytest.mark.smoke
@pytest.mark.slow
async def test_a_new_or_changed_file_is_noticed_and_a_bad_one_refused(
    host: Host, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    notified: asyncio.Queue[list[str]] = asyncio.Queue()

    async def notify(kinds: Collection[str]) -> None:
        assert tuple(kinds) == ("tools",)
        await notified.put(served(host))

    file = Path(FILE_NAME)
    watch = asyncio.ensure_future(
        reload_on_change(host, ReloadOptions(sources=Sources(), watch=True), notify)
    )
    await anyio.sleep(0.05)
    file.write_text('[tools]\ndisable = ["web.*"]\n')
    with anyio.fail_after(WAIT):
        assert await notified.get() == ["work"]
    refused = "the configuration is refused; the old one stays in force"
    wrong = ("[tools", "a = " + "[" * 5000, "[tools]\ntimeout = " + "9" * 5000)
    for count, broken in enumerate(wrong, start=1):
        file.write_text(broken)
        await until(lambda count=count: caplog.messages.count(refused) == count)
    assert served(host) == ["work"]
    file.unlink()
    file.write_text("")
    with anyio.fail_after(WAIT):
        assert await notified.get() == ["work", "web_get"]
    watch.cancel()


@pytest.mark.slow
async def test_a_file_that_is_still_being_written_is_not_taken_over(
    host: Host, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reloading, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(reloading, "_QUIET_SECONDS", 4 * WAIT)
    told: list[list[str]] = []
    done = asyncio.Event()

    async def tell(kinds: object) -> None:
        del kinds
        told.append(served(host))
        done.set()

    file = Path(FILE_NAME)
    apply_settings(host, loaded(host, '[tools]\ndisable = ["web.*"]'))
    host.loaded = load_settings()
    watching = asyncio.ensure_future(
        reload_on_change(host, ReloadOptions(sources=Sources(), watch=True), tell)
    )
    await anyio.sleep(0.05)
    for text in ("", "# one\n", "# one\n# two\n", '[tools]\ndisable = ["work"]\n'):
        file.write_text(text)
        let_time_pass()  # so that it looks again
        await anyio.sleep(0.1)
    await until(lambda: let_time_pass() or done.is_set())
    assert told == [["web_get"]]
    watching.cancel()


async def test_a_file_that_changed_during_the_start_is_taken_over(host: Host):
    told = asyncio.Event()

    async def tell(kinds: object) -> None:
        del kinds
        told.set()

    host.loaded = loaded(host, "")
    loaded(host, '[tools]\ndisable = ["web.*"]')
    waiting = asyncio.ensure_future(
        reload_on_change(host, ReloadOptions(sources=Sources(), watch=False), tell)
    )
    with anyio.fail_after(WAIT):
        await told.wait()
    assert served(host) == ["work"]
    waiting.cancel()


@pytest.mark.slow
@pytest.mark.measured
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_hangup_reloads_a_real_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PATH", str(tmp_path / "catalog"))
    Path(FILE_NAME).write_text(QUIET)
    peer = Peer()
    try:
        assert peer.initialize()["capabilities"]["tools"] == {"listChanged": True}
        assert len(peer.tool_names()) == 2
        Path(FILE_NAME).write_text(QUIET + '[tools]\ndisable = ["find_*"]')
        peer.process.send_signal(signal.SIGHUP)
        assert peer.answer()["method"] == "notifications/tools/list_changed"
        assert peer.tool_names() == ["get_standard_details"]
        peer.call(3, "find_relevant_standards", activity="x")
        refused = peer.answer()["result"]
        assert refused["isError"] is True
        assert refused["structuredContent"]["error_type"] == "disabled"
        assert peer.end() == 0
    finally:
        peer.kill()
