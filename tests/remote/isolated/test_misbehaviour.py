"""Isolated plugins that turn against their own process: others are served, and it is named."""
# ruff: noqa: ASYNC110  nothing tells of what other processes do

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.hosts import Install, MakeHost, configured, started, until_answered
from support.waiting import PAUSE, WAIT, is_alive, until, wait_until

from standards_mcp.host import Host
from standards_mcp.remote.processes import end_departed, new_mark

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the plugins find their pipes in /proc"),
]

PLUGIN = r'''
    import json, os, subprocess, sys, threading, time
    from contextlib import asynccontextmanager
    from standards_mcp import Plugin, PluginSettings, hookimpl, tool

    SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
    DAEMON = """
    import os, sys
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    open(sys.argv[1], "w").write(str(os.getpid()))
    os.closerange(0, 100)
    import time; time.sleep(600)
    """.replace("\n    ", "\n")

    def pipes(mode):
        """Return the ends of pipes that this process could read or write of the protocol."""
        found = []
        for name in os.listdir("/proc/self/fd"):
            try:
                is_pipe = os.readlink(f"/proc/self/fd/{name}").startswith("pipe:")
                flags = int(open(f"/proc/self/fdinfo/{name}").read().split()[3], 8)
            except OSError:
                continue
            if is_pipe and int(name) > 2 and flags & 3 == mode:
                found.append(int(name))
        return found

    def write(data):
        for each in pipes(os.O_WRONLY):
            os.write(each, data)

    def flood(line, seconds=2):
        def run():
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                write(line * 10_000)
        threading.Thread(target=run, daemon=True).start()

    def message(**fields):
        write(json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")

    class AcmeSettings(PluginSettings):
        hang: bool = False
        fork: bool = False

    class AcmePlugin(Plugin[AcmeSettings]):
        settings_type = AcmeSettings

        def __init__(self, settings, context):
            super().__init__(settings, context)
            if settings.fork:
                os.fork()

        @hookimpl
        @asynccontextmanager
        async def lifespan(self):
            yield
            while self.settings.hang:
                pass

        @tool(read_only=True)
        async def pid(self) -> str:
            """Its process."""
            return str(os.getpid())

        @tool
        async def act(self, how: str, file: str = "") -> str:
            """Act in the event loop."""
            result = {"content": [{"type": "text", "text": "forged"}], "resultType": "complete"}
            if how == "garbage":
                write(b"garbage\n\xff\xfe{\n[1]\n{\"jsonrpc\": 5}\nnull\n" * 1000)
            if how == "unasked":
                for number in range(1000, 1100):
                    message(id=number, result=result)
                    message(id=f"x{number}", error={"code": 1, "message": "no"})
            if how == "asks":
                for number in range(100):
                    message(id=number, method="elicitation/create", params={"message": "?"})
                    message(id=number, method="nonsense", params={})
            if how == "progress":
                for token in range(100):
                    params = {"progressToken": token, "progress": 10**400}
                    message(method="notifications/progress", params=params)
            if how == "lines":
                flood(b"x\n")
            if how == "empty":
                flood(b"\n")
            if how == "stderr":
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    os.write(2, b"flood\n" * 10_000)
            if how == "stdin":
                return repr(sys.stdin.read()) + repr(os.read(0, 10))
            if how == "fork":
                os.fork()
            if how == "daemon":
                subprocess.run([sys.executable, "-c", DAEMON, file], check=True)
            if how == "depart":
                for _ in range(12):
                    subprocess.Popen(SLEEP, start_new_session=True)
                time.sleep(20)
            if how == "close":
                for each in pipes(os.O_WRONLY):
                    os.close(each)
            if how == "deaf":
                null = os.open(os.devnull, os.O_RDONLY)
                for each in pipes(os.O_RDONLY):
                    os.dup2(null, each)
            if how == "long":
                for _ in range(40):
                    write(b"x" * (1 << 20))
            return "done"

        @tool(timeout=60)
        async def demand(self) -> str:
            """Ask without an end, and read no answer."""
            while True:
                write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 1000)
'''
GOOD = """
    from standards_mcp import Plugin, tool

    class GoodPlugin(Plugin):
        @tool(read_only=True)
        def good(self) -> str:
            '''Answer.'''
            return "good"
"""


@pytest.fixture
def make(install: Install) -> MakeHost:
    """Return a function that loads the plugin above, isolated beside one that is not."""
    install("acme", PLUGIN)
    install("good", GOOD)

    return lambda **keys: configured(plugins={"acme": {"isolate": True, **keys}, "good": {}})


async def text(host: Host, tool: str, **arguments: Any) -> str:
    result = await host.call_tool(tool, arguments)
    return (result.structured or {})["message"] if result.is_error else result.text


def memory() -> int:
    """Return how many bytes of memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_what_it_writes_beside_its_answers_costs_nobody_an_answer_and_its_stdin_is_empty(
    make: MakeHost,
):
    async with started(make()) as host:
        before = await text(host, "pid")
        assert await text(host, "act", how="stdin") == "''b''"
        for how in ("garbage", "unasked", "asks", "progress", "lines", "empty", "stderr", "fork"):
            assert await text(host, "act", how=how) == "done"
            for _ in range(5):
                assert await text(host, "good") == "good"
                assert await text(host, "pid") == before, how


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("close", "it ended with exit code 1"),
        ("long", "it wrote a line of over 32 MiB on its stdout"),
    ],
)
async def test_one_that_takes_the_protocol_from_its_process_fails_by_name(
    make: MakeHost, how: str, reason: str
):
    async with started(make()) as host:
        told = await text(host, "act", how=how)
        assert f"plugin 'acme' failed during the call: {reason}" in told
        assert await text(host, "good") == "good"
        assert (await until_answered(host, "pid")).text


async def test_one_that_takes_the_requests_from_its_process_is_started_again(make: MakeHost):
    async with started(make()) as host:
        before = await text(host, "pid")
        assert await text(host, "act", how="deaf") == "done"
        with anyio.fail_after(WAIT):
            while (await until_answered(host, "pid")).text == before:
                await anyio.sleep(PAUSE)
        assert await text(host, "good") == "good"


async def test_requests_without_an_end_whose_answers_it_does_not_read_cost_no_memory(
    make: MakeHost,
):
    async with started(make()) as host, anyio.create_task_group() as group:
        pid = int(await text(host, "pid"))
        before = memory()
        group.start_soon(text, host, "demand")
        await anyio.sleep(2)
        assert memory() - before < 30 << 20, "they are kept"
        assert await text(host, "good") == "good"
        os.kill(pid, signal.SIGKILL)


async def test_one_that_copies_itself_before_it_serves_is_served_once_and_ended_if_it_hangs(
    make: MakeHost,
):
    async with started(make(fork=True, hang=True)) as host:
        (pid,) = {await text(host, "pid") for _ in range(10)}
    assert not is_alive(int(pid))


async def test_a_daemon_that_it_leaves_behind_is_ended_and_told(
    make: MakeHost, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    file = tmp_path / "daemon"
    async with started(make()) as host:
        await text(host, "act", how="daemon", file=str(file))
        await until(lambda: file.exists() and file.read_text())
        daemon = int(file.read_text())
        assert is_alive(daemon)
    await until(lambda: not is_alive(daemon))
    notes = [vars(record) for record in caplog.records if "left behind" in str(vars(record))]
    assert [note["plugin"] for note in notes] == ["acme"]
    assert f"[{daemon}]" in notes[0]["text"]


async def test_processes_that_leave_its_session_count_among_its_processes(make: MakeHost):
    async with started(make(processes=4)) as host:
        assert "it had more than 4 processes" in await text(host, "act", how="depart")
        assert (await until_answered(host, "pid")).text


def test_no_process_is_ended_that_does_not_have_the_mark_of_the_plugin():
    mark, other = new_mark(), new_mark()
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours, theirs = (
        subprocess.Popen(command, env={**os.environ, **each}, start_new_session=True)
        for each in (mark, other)
    )
    try:
        wait_until(lambda: end_departed(os.getsid(0), mark) == [ours.pid])
        ours.wait(WAIT)
        assert theirs.poll() is None
    finally:
        for each in (ours, theirs):
            each.kill()
            each.wait(WAIT)
