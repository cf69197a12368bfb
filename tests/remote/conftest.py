"""Another MCP server behind the host, as a real process: what its tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.hosts import Entry

from standards_mcp.host import Host


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which the server leaves what it was told."""
    return tmp_path / "peer"


@pytest.fixture
def host(request: pytest.FixtureRequest, make_host: Callable[..., Host], folder: Path) -> Host:
    """Return a host with the server that the module of the test is about, its `entry`."""
    entry: Entry = request.module.entry
    return make_host(servers={"peer": entry(folder)})
