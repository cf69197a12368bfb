"""A provider, and a service at which its users sign in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.hosts import MakeHost
from support.http import free_port, served_over_http
from support.openid import CLIENT, SECRET, Browser, DeskPlugin, Provider, Serve
from support.web_server import in_thread

from standards_mcp.host import Host


@pytest.fixture
def provider() -> Iterator[Provider]:
    with in_thread(Provider()) as server:
        yield server


@pytest.fixture
def served(provider: Provider, make_host: MakeHost) -> Serve:
    """Return a function that serves pages, and opens a browser for them.

    Its arguments are keys of the table ``oidc``, and of ``[server]`` as the dictionary *server*;
    *plugin* takes the place of the usual one.
    """

    @asynccontextmanager
    async def serve(
        server: dict[str, Any] | None = None,
        auth: dict[str, Any] | None = None,
        plugin: type[DeskPlugin] = DeskPlugin,
        **oidc: Any,
    ) -> AsyncGenerator[Browser]:
        port = free_port()
        keys = {
            "issuer": provider.url,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "public_url": f"http://127.0.0.1:{port}",
            "groups": {"operators": ["admin"], "teachers": ["teacher"], "all": ["*"]},
        }
        tables = {"oidc": keys | oidc, "scopes": {"teacher": ["look"]}, **(auth or {})}
        settings = {"port": port, "admin": True, "rest": True, "auth": tables, **(server or {})}
        host: Host = make_host({"desk": plugin}, server=settings)
        async with served_over_http(host) as url:
            yield Browser(url)

    return serve
