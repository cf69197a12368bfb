from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import records
from support.pinecone_server import KEY, PineconeServer
from support.waiting import WAIT

from standards_mcp_catalog.records import StandardRecord

MakeRecord = Callable[..., StandardRecord]
MakeClient = Callable[..., Any]


@pytest.fixture(scope="session")
def record() -> MakeRecord:
    return records.record


@pytest.fixture(scope="session")
def small_catalog() -> list[StandardRecord]:
    return records.SMALL_CATALOG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    """Serve an empty index."""
    from pinecone._internal.http_client import get_budget_registry

    # The SDK stops trying again after many failures on one host, whatever the test.
    get_budget_registry()._reset()
    with PineconeServer() as server:
        server.add_index()
        yield server


@pytest.fixture
def make_client(server: PineconeServer) -> MakeClient:
    """Return a function that makes a client of the server's index; it pauses for no time."""
    from standards_mcp_catalog.pinecone.client import PineconeClient, Tuning

    def make(
        key: str = KEY, deadline: float = WAIT, *, knows_host: bool = True, **tuning: Any
    ) -> PineconeClient:
        settings = {"controller_host": server.url, "write_pauses": (0.01, 0.01)} | tuning
        host = server.url if knows_host else None
        return PineconeClient(key, host=host, deadline=deadline, tuning=Tuning(**settings))

    return make
