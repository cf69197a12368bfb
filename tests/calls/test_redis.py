"""Rate limits and cached answers that processes share through Redis, and a Redis that is gone."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as NotConnected
from support.hosts import MakeHost, plugin_with
from support.http import free_port
from support.waiting import WAIT, let_time_pass, until

from standards_mcp import ConfigError, Plugin, Tool, ToolResult
from standards_mcp.calls import cache as calls_redis
from standards_mcp.config.loading import load_settings
from standards_mcp.config.timing import Timing
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio

SERVER = shutil.which("redis-server")
PASSWORD = "hush/hush"  # noqa: S105


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def plugin(self) -> type[Plugin]:
        def count(text: str = "") -> dict[str, Any]:
            self.calls += 1
            return {"text": text, "call": self.calls}

        def noted() -> ToolResult:
            return ToolResult(text="plain", notes=("beside",))

        tools = [
            Tool(name="count", function=count, description="Count.", read_only=True),
            Tool(name="noted", function=noted, description="Note.", read_only=True),
        ]
        return plugin_with(*tools)


def url(port: int) -> str:
    return f"redis://:hush%2Fhush@127.0.0.1:{port}/0"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Any]]:
    if SERVER is None:
        pytest.skip("redis-server is not installed")
    port = free_port()
    folder = tmp_path_factory.mktemp("redis")
    command = [SERVER, "--port", str(port), "--save", "", "--requirepass", PASSWORD]
    command += ["--bind", "127.0.0.1", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        client: Any = Redis(port=port, password=PASSWORD)
        for _ in range(200):
            try:
                client.ping()
                break
            except NotConnected:
                subprocess.run([sys.executable, "-c", ""], check=True)
        yield port, client
        client.close()
        process.terminate()


@pytest.fixture
def shared(redis: tuple[int, Any]) -> int:
    """Return the port of a Redis that holds nothing."""
    redis[1].flushall()
    return redis[0]


PATIENT = Timing(redis=WAIT)


def host_at(
    make_host: MakeHost,
    port: int,
    counter: Counter,
    *,
    timing: Timing = PATIENT,
    **tools: Any,
) -> Host:
    tables = {"storage": url(port), **tools}
    return make_host({"acme": counter.plugin()}, timing=timing, tools=tables)


CACHED = {"overrides": {"count": {"cache_ttl": 60}, "noted": {"cache_ttl": 60}}}


async def test_two_servers_count_the_calls_of_both(make_host: MakeHost, shared: int):
    counter = Counter()
    one, other = (host_at(make_host, shared, counter, rate_limit="2/hour") for _ in range(2))
    async with one.running(), other.running():
        results = [await host.call_tool("count", {}) for host in (one, other, one, other)]
    assert [result.is_error for result in results] == [False, False, True, True]
    assert counter.calls == 2


async def test_an_answer_of_one_server_is_given_by_the_other(make_host: MakeHost, shared: int):
    counter = Counter()
    one, other = (host_at(make_host, shared, counter, **CACHED) for _ in range(2))
    async with one.running(), other.running():
        first = await one.call_tool("count", {"text": "é"})
        assert await other.call_tool("count", {"text": "é"}) == first
        assert counter.calls == 1
        assert (await other.call_tool("count", {})).structured == {"text": "", "call": 2}
        assert await one.call_tool("noted", {}) == await other.call_tool("noted", {})
        assert (await other.call_tool("noted", {})).notes == ("beside",)


async def test_without_redis_calls_still_work_and_limits_hold_in_this_process(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    counter = Counter()
    host = host_at(make_host, free_port(), counter, rate_limit="2/hour", **CACHED)
    async with host.running():
        results = [await host.call_tool("count", {}) for _ in range(3)]
    assert [result.is_error for result in results] == [False, False, True]
    assert "limited to 2/hour" in results[2].text
    told = "".join(f"{each.getMessage()} {vars(each).get('reason')}\n" for each in caplog.records)
    assert told.count("cannot be read") == 1, "it is told once"
    assert "cannot be reached" not in told, "and nobody asks again"
    assert "hush" not in told


async def test_a_redis_that_goes_away_and_comes_back_is_used_again(
    make_host: MakeHost, shared: int, redis: tuple[int, Any]
):
    counter = Counter()
    host = host_at(make_host, shared, counter, **CACHED)
    async with host.running():
        await host.call_tool("count", {})
        redis[1].client_kill_filter(_type="normal", skipme=True)
        results = [await host.call_tool("count", {}) for _ in range(3)]
    assert not any(result.is_error for result in results)
    assert results[-1] == results[-2]


SLOW = Timing(redis=8 * WAIT)
"""With it, Redis may take longer to answer than a tool."""


@pytest.mark.slow
@pytest.mark.parametrize("rest", [60, 0])
async def test_a_redis_that_hangs_is_left_alone(
    make_host: MakeHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    rest: int,
):
    monkeypatch.setattr(calls_redis, "_REST_SECONDS", rest)
    counter, opened = Counter(), list[socket.socket]()
    with socket.socket() as silent, ExitStack() as connections:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.setblocking(False)

        def asked() -> int:
            with suppress(BlockingIOError):
                while True:
                    opened.append(connections.enter_context(silent.accept()[0]))
            return len(opened)

        host = host_at(make_host, silent.getsockname()[1], counter, timing=SLOW, **CACHED)
        async with host.running():
            call = asyncio.ensure_future(host.call_tool("count", {}))
            await until(asked)
            let_time_pass(4 * WAIT)
            assert (await call).is_error
            await until(lambda: let_time_pass() or "cannot be read" in caplog.text)
            before = asked()
            for _ in range(3):
                assert not (await host.call_tool("count", {})).is_error
            assert (asked() == before) == bool(rest), "somebody tries when it has rested"
    assert counter.calls == 3
    assert caplog.text.count("cannot be read") == 1


async def test_a_wrong_password_is_passed_by_and_not_told(
    make_host: MakeHost, shared: int, caplog: pytest.LogCaptureFixture
):
    tools = {"storage": f"redis://:wrongsecret@127.0.0.1:{shared}/0", **CACHED}
    host = make_host({"acme": Counter().plugin()}, tools=tools)
    async with host.running():
        assert not (await host.call_tool("count", {})).is_error
    assert "wrongsecret" not in caplog.text + str([vars(each) for each in caplog.records])


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ("redis://me:hush/hush@localhost:6379", "is not a URL"),
        ("redis://:hush@localhost:port/0", "is not a URL"),
        ("http://:hush@localhost", "must be a redis"),
    ],
)
def test_a_wrong_url_is_refused_by_its_key_without_its_password(
    tmp_path: Path, storage: str, why: str
):
    file = tmp_path / "s.toml"
    file.write_text(f'[tools]\nstorage = "{storage}"\n')
    with pytest.raises(ConfigError, match=rf"s.toml:2: \[tools\] storage: {why}") as caught:
        load_settings(file)
    assert "hush" not in str(caught.value)


def test_a_missing_package_is_told_at_once(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigError, match=r"run `.* install 'limits\[redis\]<6"):
        make_host({}, tools={"storage": "redis://localhost"})
