from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from emulator.server import PineconeServer

from standards_mcp_pinecone.client import PineconeClient


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PineconeServer]:
    """Serve an empty index."""
    from pinecone._internal.http_client import get_budget_registry

    # The SDK stops retrying after many failures on one host, across all tests.
    get_budget_registry()._reset()
    with PineconeServer() as server:
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", server.url)
        server.add_index()
        yield server


@pytest.fixture
async def client(server: PineconeServer) -> AsyncIterator[PineconeClient]:
    """Return a client of the server's index with the shortest pauses."""
    client = server.client()
    yield client
    await client.aclose()
