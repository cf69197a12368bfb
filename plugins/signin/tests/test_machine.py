"""The host signs in as itself: client credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.hosts import MakeHost, message_of, started

pytestmark = pytest.mark.anyio


async def test_the_host_signs_in_and_calls(
    make_host: MakeHost, issuer: Any, upstream: Any, auth_of: Callable[..., Any]
):
    async with upstream() as url:
        host = make_host(servers={"wiki": {"url": url, "auth": auth_of(scopes=["read"])}})
        async with started(host):
            called = await host.call_tool("wiki_who", {})
            assert called.content[0]["text"] == f"{issuer.url}:host"
    (sent,) = issuer.requests
    assert sent == {"grant_type": "client_credentials", "resource": url, "scope": "read"}
