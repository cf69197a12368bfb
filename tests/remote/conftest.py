"""Another MCP server behind the host, as a real process: what its tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from support.hosts import Entry, MakeHost, OpenClient

from standards_mcp.host import Host
from standards_mcp.server.server import build_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which the server leaves what it was told."""
    return tmp_path / "peer"


@pytest.fixture
def host(request: pytest.FixtureRequest, make_host: MakeHost, folder: Path) -> Host:
    """Return a host with the server that the module of the test is about, its `entry`."""
    entry: Entry = request.module.entry
    return make_host(servers={"peer": entry(folder)})


@pytest.fixture
def open_newest() -> OpenClient:
    """Return a function that opens a client of a host, where all generations get the same."""
    return lambda host, **options: Client(build_server(host, "1"), **options)
