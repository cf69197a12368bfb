"""The store in Pinecone passes the tests of every store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from emulator.server import PineconeServer
from support.store_contract import (  # noqa: F401  - pytest collects the classes
    RECORDS,
    TestAFilter,
    TestASearch,
    TestASelection,
    TestClosing,
    TestFetch,
    TestFind,
    TestSuggest,
    TestTheOverview,
    TestWriting,
)

from standards_mcp_pinecone.client import PineconeClient

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
async def store(server: PineconeServer) -> AsyncIterator[PineconeClient]:
    server.metadata_rate = 1000
    client = server.client(metadata_rate=1000)
    yield client
    await client.aclose()


@pytest.fixture
async def filled(store: PineconeClient) -> PineconeClient:
    assert await store.upsert(RECORDS.values()) == len(RECORDS)
    return store
