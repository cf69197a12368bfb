"""The connections of users."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from standards_mcp import ApiError
from standards_mcp.calls.context import Principal
from standards_mcp.config.models.sign_in import ServerAuth
from standards_mcp_oauth.issuers import Endpoints
from standards_mcp_signin import sign_in as module
from standards_mcp_signin.grants import Client, Token
from standards_mcp_signin.sign_in import OAuth

pytestmark = pytest.mark.anyio
CLIENT = Client(endpoints=Endpoints(token_endpoint="https://id.example.org"), id="host")  # noqa: S106


class Connection:
    def __init__(self, account: object) -> None:
        self.account, self.is_open = account, True

    async def aclose(self) -> None:
        self.is_open = False


@pytest.fixture
def wiki(tmp_path: Path) -> OAuth:
    """Return a server at which ann, bob and others are signed in."""
    auth = ServerAuth(grant="authorization_code")
    url = "https://wiki.example.org"
    wiki = OAuth("wiki", url, auth, tmp_path, None, lambda _: None)
    for name in ("ann", "bob", "cid", "dan", "eve"):
        wiki.store.write(name, Token(access=f"token-of-{name}", client=CLIENT))
    return wiki


def of(wiki: OAuth, name: str) -> Any:
    return wiki.connection(Principal(name), Connection)


async def used(wiki: OAuth, name: str) -> Connection:
    async with of(wiki, name) as connection:
        return connection


async def test_a_user_has_one_connection_and_shares_it_with_nobody(wiki: OAuth):
    ann = await used(wiki, "ann")
    assert await used(wiki, "ann") is ann
    bob = await used(wiki, "bob")
    assert bob.account is not ann.account
    await wiki.aclose()
    assert not ann.is_open


async def test_the_oldest_connection_without_a_call_makes_room(
    wiki: OAuth, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MAX_USERS", 2)
    async with of(wiki, "ann") as ann:
        bob = await used(wiki, "bob")
        await used(wiki, "cid")
        assert ann.is_open
        assert not bob.is_open
        async with of(wiki, "dan"):
            with pytest.raises(ApiError, match="Too many users call server 'wiki'"):
                await used(wiki, "eve")
        assert (await used(wiki, "eve")).is_open
    assert ann.is_open


async def test_a_connection_that_nobody_uses_is_closed(
    wiki: OAuth, monkeypatch: pytest.MonkeyPatch
):
    ann = await used(wiki, "ann")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 700)
    await used(wiki, "bob")
    assert not ann.is_open


async def test_a_user_who_is_not_signed_in_gets_no_connection(wiki: OAuth):
    with pytest.raises(ApiError, match="Not signed in at server 'wiki': ask its administrator"):
        await used(wiki, "zoe")
