"""The start page of the service."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.hosts import MakeHost
from support.http import auth_of, bearer, requests_to

from standards_mcp import Plugin
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("server", "paths"),
    [
        ({}, ["/health"]),
        ({"rest": True}, ["/health", "/docs"]),
        ({"rest": True, "admin": True}, ["/health", "/docs", "/admin"]),
    ],
    ids=str,
)
async def test_the_root_links_to_the_served_pages(
    make_host: MakeHost, server: dict[str, Any], paths: list[str]
):
    host = make_host({"empty": Plugin}, server={"port": 0, **server})
    async with requests_to(host) as client:
        page = await client.get("/", headers=BROWSER)
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "<code>/mcp</code>" in page.text
        links = re.findall(r'href="([^"]+)"', page.text)
        assert [f"/{each}" for each in links] == paths
        for link in links:
            assert (await client.get(f"/{link}", headers=BROWSER)).status_code in (200, 404)
        for method in ("GET", "POST", "DELETE"):
            answer = await client.request(method, "/")
            assert answer.status_code == 404
            assert answer.json()["error_type"] == "not_found"
            told = f"nothing is here; MCP is at /mcp. See also: {', '.join(paths)}"
            assert answer.json()["message"] == told


async def test_the_root_needs_a_token_where_the_service_does(make_host: MakeHost):
    token = new_token()
    host = make_host({"empty": Plugin}, server={"port": 0, "auth": auth_of(ann=token)})
    async with requests_to(host) as client:
        assert (await client.get("/", headers=BROWSER)).status_code == 401
        assert (await client.get("/", headers=BROWSER | bearer(token))).status_code == 200
