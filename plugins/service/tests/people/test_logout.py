"""People who sign out at their provider, which tells the service (back-channel logout)."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from support.hosts import MakeHost
from support.http import auth_of, patient_client, requests_to
from support.openid import CLIENT, LOGOUT, SECRET, Browser, Provider, Serve

from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
NOW = int(time.time())
PATH = "/backchannel-logout"


async def tell(url: str, logout_token: str) -> httpx2.Response:
    """Send a logout token as a provider does: with no cookie, and no origin."""
    async with patient_client() as client:
        return await client.post(f"{url}{PATH}", data={"logout_token": logout_token})


async def is_signed_in(browser: Browser) -> bool:
    return (await browser.get("/connect")).status_code == 200


async def two_browsers(url: str, provider: Provider) -> tuple[Browser, Browser]:
    """Sign in with two browsers, in two sessions of the provider."""
    browsers = Browser(url), Browser(url)
    for name, browser in zip("ab", browsers, strict=True):
        provider.claims |= {"sid": name, "iat": NOW - 100}
        await browser.sign_in()
        assert await is_signed_in(browser)
    return browsers


@pytest.mark.parametrize(
    ("claims", "stays"),
    [
        ({}, (False, False)),
        ({"sid": "a"}, (False, True)),
        ({"sid": "b", "sub": None}, (True, False)),
        ({"sid": "another"}, (True, True)),
        ({"sub": "bob"}, (True, True)),
        ({"iat": NOW - 200}, (True, True)),
        ({"aud": ["another", CLIENT]}, (False, False)),
        ({"iat": float(NOW)}, (False, False)),
        ({"sid": "\ud800"}, (True, True)),
    ],
)
async def test_a_logout_ends_a_session_or_all_of_a_person(
    served: Serve, provider: Provider, claims: dict[str, Any], stays: tuple[bool, bool]
):
    async with served() as server:
        one, other = await two_browsers(server.url, provider)
        answer = await tell(server.url, provider.logout_token(**claims))
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["cache-control"] == "no-store"
        assert (await is_signed_in(one), await is_signed_in(other)) == stays


async def test_a_logout_that_comes_again_ends_no_later_sign_in(served: Serve, provider: Provider):
    async with served() as browser:
        provider.claims["iat"] = NOW - 100
        await browser.sign_in()
        earlier = provider.logout_token(iat=NOW - 90)
        later = provider.logout_token(iat=NOW - 50)
        for token in (later, earlier):
            assert (await tell(browser.url, token)).status_code == 200
        assert not await is_signed_in(browser)
        provider.claims["iat"] = NOW - 60  # of a code that was on its way
        await browser.sign_in()
        assert not await is_signed_in(browser)
        provider.claims["iat"] = NOW - 40
        await browser.sign_in()
        for token in (later, earlier):
            assert (await tell(browser.url, token)).status_code == 200
        assert await is_signed_in(browser)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://login.example.org"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"iat": None},
        {"iat": NOW + 3600},
        {"iat": "soon"},
        {"iat": float("inf")},
        {"exp": NOW - 60},
        {"exp": None},
        {"jti": None},
        {"events": None},
        {"events": [LOGOUT]},
        {"events": {"http://schemas.openid.net/event/other": {}}},
        {"nonce": "n"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": None, "sid": ["a"]},
    ],
)
async def test_a_token_that_is_no_logout_of_the_provider_ends_nothing(
    served: Serve, provider: Provider, claims: dict[str, Any]
):
    async with served() as browser:
        await browser.sign_in()
        answer = await tell(browser.url, provider.logout_token(**claims))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
        assert answer.headers["cache-control"] == "no-store"
        assert await is_signed_in(browser)


async def test_tokens_of_others_and_other_bodies_end_nothing(served: Serve, provider: Provider):
    stranger = rsa.generate_private_key(65537, 2048)
    good = provider.logout_token()
    claims = jwt.decode(good, options={"verify_signature": False})
    forged = [
        jwt.encode(claims, stranger, "RS256", {"kid": "one"}),
        jwt.encode(claims, SECRET * 2, "HS256", {"kid": "one"}),
        jwt.encode(claims, None, "none", {"kid": "one"}),
        jwt.encode(claims, stranger, "RS256", {"kid": "unknown"}),
        f"{good[:-8]}AAAAAAAA",
        "",
        "\ud7ff\x00.a.b",
    ]
    async with served() as browser:
        await browser.sign_in()
        for token in forged:
            assert (await tell(browser.url, token)).status_code == 400, token
        async with patient_client(base_url=browser.url) as client:
            for options, status in (
                ({"json": {"logout_token": good}}, 415),
                ({"data": {"logout_token": good * 100}}, 413),
                ({"data": {"token": good}}, 400),
                ({"data": {"logout_token": good}, "headers": {"host": "evil.example.org"}}, 421),
            ):
                assert (await client.post(PATH, **options)).status_code == status
            assert (await client.get(PATH, params={"logout_token": good})).status_code == 405
        assert await is_signed_in(browser)


async def test_keys_that_cannot_be_read_are_told_to_the_provider(
    served: Serve, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    async with served() as browser:
        provider.is_down = True
        answer = await tell(browser.url, provider.logout_token())
        assert answer.status_code == 400
        assert "try again later" in answer.json()["error_description"]
        provider.is_down = False
        monkeypatch.setattr("standards_mcp_service.jwt_tokens._RETRY_SECONDS", 0)
        assert (await tell(browser.url, provider.logout_token())).status_code == 200


async def test_a_logout_that_cannot_be_kept_is_an_error(
    served: Serve, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    def refuse(folder: object) -> Any:
        raise OSError(f"{folder}: the disk is full")

    async with served() as browser:
        await browser.sign_in()
        monkeypatch.setattr("standards_mcp_service.people.cookies.private_folder", refuse)
        answer = await tell(browser.url, provider.logout_token())
    assert (answer.status_code, answer.json()["error_description"]) == (
        400,
        "it cannot be kept now; try again later",
    )


async def test_without_people_there_is_no_such_address(make_host: MakeHost):
    auth = auth_of({"all": ["*"]}, ann=(new_token(), "all"))
    host = make_host({}, server={"port": 0, "auth": auth})
    async with requests_to(host) as client:
        assert (await client.post(PATH, data={"logout_token": "x"})).status_code == 401
