"""The connections of users."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

import pytest

from standards_mcp import ApiError
from standards_mcp_signin import pool
from standards_mcp_signin.pool import Pool

pytestmark = pytest.mark.anyio


class Connection:
    def __init__(self) -> None:
        self.is_open = True

    async def aclose(self) -> None:
        self.is_open = False


async def used(connections: Pool, key: str) -> Connection:
    async with connections.connection(key, Connection) as connection:
        return connection


async def test_a_user_has_one_connection_and_shares_it_with_nobody():
    connections = Pool("wiki")
    ann = await used(connections, "ann")
    assert await used(connections, "ann") is ann
    assert await used(connections, "bob") is not ann
    await connections.aclose()
    assert not ann.is_open


async def test_the_oldest_connection_without_a_call_makes_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "MAX_CONNECTIONS", 2)
    connections = Pool("wiki")
    async with connections.connection("ann", Connection) as ann:
        bob = await used(connections, "bob")
        await used(connections, "cid")
        assert ann.is_open
        assert not bob.is_open
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(connections.connection("dan", Connection))
            with pytest.raises(ApiError, match="Too many users call server 'wiki'"):
                await used(connections, "eve")
        assert (await used(connections, "eve")).is_open
    assert ann.is_open


async def test_a_connection_that_nobody_uses_is_closed(monkeypatch: pytest.MonkeyPatch):
    connections = Pool("wiki")
    ann = await used(connections, "ann")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 700)
    await used(connections, "bob")
    assert not ann.is_open
