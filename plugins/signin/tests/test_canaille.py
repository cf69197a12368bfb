"""Sign-ins at Canaille, an authorization server of others."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
import httpx2
import pytest
from pytest_iam import Server, iam_configuration, iam_server, iam_server_port  # noqa: F401
from support.hosts import MakeHost

from standards_mcp_signin.accounts import ApiError
from standards_mcp_signin.login import begin, finish

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
REDIRECT = "http://127.0.0.1:9/signed-in"
URL = "https://wiki.example.org/mcp"


def sign_in_of(make_host: MakeHost, server: Server, **keys: Any) -> Any:
    issuer = server.url.removesuffix("/")
    auth = {"issuer": issuer, "scopes": ["profile"], **keys}
    host = make_host(servers={"wiki": {"url": URL, "auth": auth}})
    return host.manager.records["wiki"].plugin.sign_in


async def test_the_host_signs_in_as_itself(
    make_host: MakeHost,
    iam_server: Server,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
):
    body = {
        "client_name": "host",
        "redirect_uris": [REDIRECT],
        "grant_types": ["client_credentials"],
        "token_endpoint_auth_method": "client_secret_basic",
        "scope": "profile",
    }
    client = (
        await anyio.to_thread.run_sync(
            lambda: httpx2.post(f"{iam_server.url}oauth/register", json=body)
        )
    ).json()
    monkeypatch.setenv("CLIENT_SECRET", client["client_secret"])
    secret = {"client_id": client["client_id"], "client_secret": "${CLIENT_SECRET}"}
    auth = sign_in_of(make_host, iam_server, grant="client_credentials", **secret)
    await auth.operator.prepare()
    assert auth.operator.current().access


async def test_a_user_signs_in_with_a_registered_client_and_the_token_rotates(
    make_host: MakeHost,
    iam_server: Server,  # noqa: F811
):
    auth = sign_in_of(make_host, iam_server, grant="authorization_code")
    user = iam_server.random_user()
    iam_server.login(user)
    url, _ = await begin(auth, "local", REDIRECT)
    iam_server.consent(user)
    answer = await anyio.to_thread.run_sync(lambda: httpx2.get(url))
    assert answer.status_code == 302, answer.text
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    await finish(auth, "local", REDIRECT, {name: values[0] for name, values in query.items()})
    first = auth.store.read("local")
    assert first.refresh
    access = first.access
    for _ in range(2):
        access = await auth.operator._valid(access)
    assert access != first.access
    with pytest.raises(ApiError, match="invalid_grant"):
        await finish(auth, "local", REDIRECT, {name: values[0] for name, values in query.items()})
