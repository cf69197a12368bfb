"""Tokens of the configuration: their expiry, and the text of a refusal."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from click.testing import CliRunner, Result
from pydantic import ValidationError
from support.hosts import MakeHost
from support.http import (
    auth_of,
    bearer,
    open_session,
    patient_client,
    requests_to,
    rpc,
    served_over_http,
)
from support.waiting import WAIT, let_time_pass

from standards_mcp import Plugin
from standards_mcp.cli import cli
from standards_mcp.config.loading import Sources
from standards_mcp.config.models.http import AuthSettings, TokenSection
from standards_mcp.host import Host
from standards_mcp_service.tokens import new_token, token_hash

pytestmark = pytest.mark.anyio
ANN, BOB = new_token(), new_token()
PAST = "2001-01-01T00:00:00Z"
SCOPES = '[server.auth.scopes]\nteacher = ["find_*"]\nguest = ["get_*"]\n'


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def auth(ann_expires: str | None) -> dict[str, Any]:
    held = auth_of(ann=ANN, bob=BOB)
    held["tokens"]["ann"]["expires"] = ann_expires
    return held


@pytest.fixture
def make_service(make_host: MakeHost) -> MakeHost:
    def make(ann_expires: str | None = None, **server: Any) -> Host:
        settings = {"port": 0, "auth": auth(ann_expires), **server}
        return make_host({"empty": Plugin}, server=settings)

    return make


def reload_with(host: Host, ann_expires: str | None) -> None:
    changed = {"auth": AuthSettings.model_validate(auth(ann_expires))}
    server = host.settings.server.model_copy(update=changed)
    host.take_over(host.loaded, host.settings.model_copy(update={"server": server}))


async def test_a_missing_a_wrong_and_an_expired_token_get_different_answers(
    make_service: MakeHost, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", "standards_mcp.service")
    cases: list[tuple[dict[str, str], str, str]] = [
        ({}, "missing_token", "a token is needed, as Authorization: Bearer TOKEN"),
        (bearer(new_token()), "invalid_token", "the token is not valid here"),
        ({"authorization": "Digest x"}, "invalid_token", "the token is not valid here"),
        (bearer(ANN), "invalid_token", f"the token expired at {PAST}; ask for a new one"),
    ]
    async with requests_to(make_service(PAST)) as client:
        for headers, error, why in cases:
            refused = await client.get("/health", headers=headers)
            assert refused.status_code == 401
            assert refused.json()["error"] == error
            assert refused.json()["error_description"].startswith(why)
            challenge = refused.headers["www-authenticate"]
            assert challenge.startswith("Bearer ")
            assert (f'error="{error}", error_description="{why}' in challenge) == bool(headers)
        assert (await client.get("/health", headers=bearer(BOB))).status_code == 200
    refused_for = [vars(line)["reason"] for line in caplog.records if "refused" in line.message]
    assert refused_for == ["token", "token", "expired token"]


async def test_a_browser_may_send_the_expired_token_as_a_password(make_service: MakeHost):
    async with served_over_http(make_service(PAST)) as url:
        login = httpx2.BasicAuth("ann", ANN)
        async with patient_client(base_url=url, auth=login) as client:
            refused = await client.get("/health", headers={"accept": "text/html"})
    assert "the token expired" in refused.text
    challenges = refused.headers.get_list("www-authenticate")
    assert [each.split()[0] for each in challenges] == ["Bearer", "Basic"]


@pytest.mark.parametrize(
    ("new_expiry", "status"),
    [(None, 401), (PAST, 401), (in_seconds(86_400), 404)],
    ids=["it expires", "a reload sets one that is past", "a reload sets an earlier one"],
)
async def test_streams_and_sessions_end_with_their_token(
    make_service: MakeHost, monkeypatch: pytest.MonkeyPatch, new_expiry: str | None, status: int
):
    host, now = make_service(in_seconds(172_800)), time.time
    async with requests_to(host, timeout=None) as client:
        session = await open_session(client, ANN)
        async with client.stream("GET", "/mcp", headers=session) as stream:
            assert stream.status_code == 200
            if new_expiry:
                reload_with(host, new_expiry)
            else:
                monkeypatch.setattr(time, "time", lambda: now() + 172_900)
                let_time_pass(172_900)
            with anyio.fail_after(WAIT):
                assert [line async for line in stream.aiter_lines()] == []
        pinged = await client.post("/mcp", json=rpc("ping"), headers=session)
    assert pinged.status_code == status


@pytest.mark.parametrize("expires", ["tomorrow", "2026-01-01", "2026-13-01T00:00:00Z", ""])
def test_an_invalid_expiry_is_refused(expires: str):
    with pytest.raises(ValidationError):
        TokenSection(sha256=token_hash(ANN), expires=expires)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["auth", "token", *arguments])


@pytest.fixture
def file() -> Path:
    path = Path("standards-mcp.toml")
    path.write_text("", encoding="utf-8")
    return path


@pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("90d", 90 * 24), ("4w", 4 * 7 * 24)])
def test_a_token_is_made_for_a_time(file: Path, text: str, hours: int):
    before = in_seconds(0)
    assert run("new", "ann", "--expires", text).exit_code == 0
    section = Sources(file).load().settings.server.auth.tokens["ann"]
    assert section.expires_at is not None
    began = datetime.fromisoformat(before).timestamp()
    assert 0 <= section.expires_at - began - 3600 * hours < 3600
    assert f"expires {section.expires}" in run("list").stdout
    listed = json.loads(run("list", "--json").stdout)
    assert listed == [{"name": "ann", "scopes": ["*"], "expires": section.expires}]


def test_the_list_tells_tokens_that_do_not_expire_from_those_that_have(file: Path):
    assert run("new", "ann", "--expires", "1h").exit_code == 0
    assert run("new", "ann", "--replace").exit_code == 0
    assert Sources(file).load().settings.server.auth.tokens["ann"].expires is None
    assert run("list").stdout.split() == ["ann", "*", "does", "not", "expire"]
    table = f'[server.auth.tokens.ann]\nsha256 = "{"0" * 64}"\nexpires = "{PAST}"\n'
    file.write_text(table, encoding="utf-8")
    assert f"expired {PAST}" in run("list").stdout


@pytest.mark.parametrize("text", ["90", "0d", "d", "-1d", "1.5d", "99999999w", "2026-01-01", ""])
def test_an_invalid_duration_makes_no_token(file: Path, text: str):
    refused = run("new", "ann", "--expires", text)
    assert refused.exit_code == 2
    assert "give hours, days or weeks, such as 12h, 90d or 4w" in " ".join(refused.output.split())
    assert file.read_text("utf-8") == ""


def test_a_token_without_a_scope_is_refused_with_the_scopes_and_a_command(file: Path):
    file.write_text(SCOPES, encoding="utf-8")
    refused = run("new", "ann")
    assert refused.exit_code == 2
    told = " ".join(refused.output.split())
    assert "teacher, guest" in told
    assert "admin and metrics are for the pages of operators" in told
    command = "standards-mcp auth token new ann --scope teacher"
    assert told.endswith(command)
    assert run(*command.split()[3:]).exit_code == 0
