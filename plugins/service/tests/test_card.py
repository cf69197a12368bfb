"""The server card, which everybody may read."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from support.hosts import MakeHost
from support.http import ACCEPT, MODERN, auth_of, requests_to, rpc

from standards_mcp import Plugin, tool
from standards_mcp.config.models.http import HttpSettings
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
URL = "https://mcp.example.org/mcp"
PATH = "/mcp/server-card"
ELSEWHERE = {"origin": "https://elsewhere.example.com", "host": "mcp.example.org"}


class BooksPlugin(Plugin):
    title = "Books"

    @tool(read_only=True)
    def find_book(self) -> str:
        """Find."""
        return "found"


@pytest.mark.parametrize("has_tokens", [False, True])
async def test_the_card_tells_where_the_service_is_and_nothing_that_needs_a_token(
    make_host: MakeHost, has_tokens: bool
):
    server: dict[str, Any] = {"port": 0, "card": URL}
    if has_tokens:
        server |= {"auth": auth_of(ann=new_token())}
    host = make_host({"books": BooksPlugin}, server=server)
    async with requests_to(host) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, ELSEWHERE):
            answer = await client.get(f"{PATH}?x=1", headers=headers)
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == "application/mcp-server-card+json"
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["cache-control"] == "public, max-age=3600"
        card = answer.json()
        assert card.pop("description")[-1] == "."
        assert card == {
            "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
            "name": "org.example.mcp/standards-mcp",
            "title": "standards-mcp" if has_tokens else "Books",
            "version": card["version"],
            "remotes": [
                {
                    "type": "streamable-http",
                    "url": URL,
                    "supportedProtocolVersions": card["remotes"][0]["supportedProtocolVersions"],
                }
            ],
        }
        assert card["remotes"][0]["supportedProtocolVersions"][:2] == ["2026-07-28", "2025-11-25"]
        known = {"if-none-match": answer.headers["etag"]}
        assert (await client.get(PATH, headers=known)).status_code == 304
        assert (await client.options(PATH, headers=ELSEWHERE)).status_code == 204
        assert (await client.post(PATH)).status_code == 405
        if not has_tokens:
            named = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
            message = rpc("server/discover", _meta=MODERN)
            answer = await client.post("/mcp", json=message, headers=ACCEPT | named)
            info = answer.text
            assert '"title":"Books"' in info
            assert f'"version":"{card["version"]}"' in info


async def test_there_is_no_card_by_default(make_host: MakeHost):
    async with requests_to(make_host({"books": BooksPlugin}, server={"port": 0})) as client:
        assert (await client.get(PATH)).status_code == 404


@pytest.mark.parametrize(
    "url", ["http://a.b/mcp", "https://", "https://u:p@a.b", "https://a.b?k=1"]
)
def test_the_address_of_the_card_is_public_and_has_no_secret(url: str):
    with pytest.raises(ValidationError, match="an address such as"):
        HttpSettings(card=url)
