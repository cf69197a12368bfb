"""The token of each caller is exchanged for a token of the other server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from support.hosts import MakeHost, message_of
from support.http import auth_of as tokens_of
from support.http import http_client, served_over_http
from support.web_server import WebServer, in_thread

from standards_mcp.host import Host

pytestmark = pytest.mark.anyio
AuthOf = Callable[..., dict[str, Any]]
HOST = "https://host.example.org/mcp"


@pytest.fixture
def service(make_host: MakeHost, issuer: Any, auth_of: AuthOf) -> Callable[..., Host]:
    """Return a function that makes a host which takes the issuer's tokens, and one of its own."""

    def make(url: str, **keys: Any) -> Host:
        jwt = {"issuer": issuer.url, "audience": HOST, "jwks_url": f"{issuer.url}/keys"}
        auth = {"jwt": jwt, **tokens_of(own="the token of a program")}
        wiki = {"url": url, "auth": auth_of("token_exchange", **keys)}
        return make_host(servers={"wiki": wiki}, server={"port": 0, "auth": auth})

    return make


async def called(client: Client, tool: str = "wiki_who") -> str:
    return (await client.call_tool(tool, {})).content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_caller_has_an_own_token_that_is_used_again(
    service: Callable[..., Host], issuer: Any, upstream: Any, mode: str
):
    tokens = {name: issuer.token(name, HOST) for name in ("ann", "bob")}
    async with upstream() as url, served_over_http(service(url, audience="wiki")) as own:

        async def call(name: str) -> None:
            async with http_client(own, tokens[name], mode=mode) as client:
                for _ in range(3):
                    assert await called(client) == f"{issuer.url}:{name}"

        async with anyio.create_task_group() as group:
            for name in ("ann", "bob", "ann"):
                group.start_soon(call, name)
    first, *exchanges = issuer.requests
    assert first == {"grant_type": "client_credentials", "resource": url}, "it lists the tools"
    assert sorted(sent["subject_token"] for sent in exchanges) == sorted(tokens.values())
    assert exchanges[0] == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": exchanges[0]["subject_token"],
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "resource": url,
        "audience": "wiki",
    }


async def test_a_caller_without_a_token_to_exchange_is_told_and_others_go_on(
    service: Callable[..., Host], issuer: Any, upstream: Any
):
    async with upstream() as url:
        host = service(url)
        async with served_over_http(host) as own:
            async with http_client(own, "the token of a program") as client:
                assert "exchanges the token of each user" in await called(client)
            async with http_client(own, issuer.token("ann", HOST)) as client:
                assert await called(client) == f"{issuer.url}:ann"
            local = await host.call_tool("wiki_who", {})
            assert "exchanges the token of each user" in message_of(local)


async def test_an_expired_token_of_the_server_is_exchanged_again(
    service: Callable[..., Host], issuer: Any, upstream: Any
):
    token = issuer.token("ann", HOST)
    issuer.lifetime = 20
    async with (
        upstream() as url,
        served_over_http(service(url)) as own,
        http_client(own, token) as client,
    ):
        assert await called(client) == f"{issuer.url}:ann"
        count = len(issuer.requests)
        assert await called(client) == f"{issuer.url}:ann"
        assert len(issuer.requests) > count


async def test_the_token_of_a_caller_is_never_sent_to_the_server(
    service: Callable[..., Host], issuer: Any, upstream: Any, seen: list[str]
):
    token = issuer.token("ann", HOST)
    async with (
        upstream() as url,
        served_over_http(service(url)) as own,
        http_client(own, token) as client,
    ):
        assert await called(client) == f"{issuer.url}:ann"
    assert seen
    assert not any(token in header for header in seen)


async def test_prompts_and_resources_are_read_with_the_account_of_the_caller(
    service: Callable[..., Host], issuer: Any, upstream: Any
):
    async with (
        upstream() as url,
        served_over_http(service(url)) as own,
        http_client(own, issuer.token("ann", HOST)) as client,
    ):
        read = await client.read_resource("who://me")
        assert read.contents[0].text == f"{issuer.url}:ann"
        prompt = await client.get_prompt("wiki_greet", {})
        assert prompt.messages[0].content.text == f"Hello, {issuer.url}:ann"


async def test_a_server_with_sessions_has_one_for_each_caller(
    service: Callable[..., Host], issuer: Any
):
    with in_thread(WebServer()) as server:
        host = service(server.url)
        async with served_over_http(host) as own:
            for name in ("ann", "bob", "ann"):
                async with http_client(own, issuer.token(name, HOST)) as client:
                    assert not (await client.call_tool("wiki_count", {})).is_error
    # Each token has a connection, and so has the operator: also the second token of ann, which may
    # have other rights.
    assert len(server.sessions) == 4
