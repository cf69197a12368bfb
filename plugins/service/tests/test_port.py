"""Where ``serve --transport http`` listens: ports that are taken show which one it has chosen."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from support.peer import COMMAND
from support.waiting import WAIT

from standards_mcp.cli import run as run_program

pytestmark = [pytest.mark.processes, pytest.mark.measured]


class Taken(NamedTuple):
    """Ports at which other programs listen."""

    variable: int
    file: int
    setting: int
    option: int


@pytest.fixture
def taken() -> Iterator[Taken]:
    with ExitStack() as sockets:
        ports: list[int] = []
        for _ in Taken._fields:
            other = sockets.enter_context(socket.socket())
            other.bind(("127.0.0.1", 0))
            other.listen()
            ports.append(other.getsockname()[1])
        yield Taken(*ports)


def serve(*options: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "serve", "--transport", "http", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT)


def test_mcp_port_counts_where_nothing_else_has_a_port(
    taken: Taken, monkeypatch: pytest.MonkeyPatch
):
    def chosen(*options: str) -> str:
        told = serve(*options).stderr
        return told.partition("cannot listen at 127.0.0.1:")[2].partition(":")[0]

    monkeypatch.setenv("MCP_PORT", f" {taken.variable} ")
    assert chosen() == str(taken.variable)
    Path("standards-mcp.toml").write_text(f"[server]\nport = {taken.file}\n", "utf-8")
    assert chosen() == str(taken.file)
    monkeypatch.setenv("STANDARDS_MCP_SERVER__PORT", str(taken.setting))
    assert chosen() == str(taken.setting)
    assert chosen("--port", str(taken.option)) == str(taken.option)


@pytest.mark.parametrize("port", ["tcp://10.0.0.1:80", "65536", "\u0661"])
def test_only_serve_refuses_an_invalid_mcp_port(
    port: str, taken: Taken, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MCP_PORT", port)
    refused = serve()
    assert refused.returncode == 2
    assert "MCP_PORT in the environment is not a port" in refused.stderr
    assert f"127.0.0.1:{taken.option}" in serve("--port", str(taken.option)).stderr
    assert run_program(("config", "check")) == 0
