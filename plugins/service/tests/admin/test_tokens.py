"""The page of tokens, as a browser requests it."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from support.http import bearer, open_session, patient_client, rpc, served_over_http
from support.waiting import WAIT

from standards_mcp import Plugin, tool
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.reload import ReloadOptions
from standards_mcp_service.tokens import new_token, token_hash

pytestmark = pytest.mark.anyio
ROOT, BOB, ANN = (new_token() for _ in range(3))
OPEN = """\
[server]
admin = true
port = 0

[server.audit]
path = "audit.jsonl"

[server.auth.scopes]
teacher = ["lo*"]
"""
TEXT = f"""{OPEN}
[server.auth.tokens.root]  # of the machine's owner
sha256 = "{token_hash(ROOT)}"

[server.auth.tokens.ann]
sha256 = "{token_hash(ANN)}"
scopes = ["teacher"]
"""
WITH_BOB = f"""{TEXT}
[server.auth.tokens.bob]
sha256 = "{token_hash(BOB)}"
scopes = ["admin"]
"""
OIDC = """
[server.auth.oidc]
issuer = "https://login.example"
client_id = "standards"
public_url = "http://localhost:8000"
groups = { operators = ["admin"] }
"""
MAKE = {"action": "create", "name": "eve", "scope": ["teacher"], "expires": ""}
HOSTILE = ["<script>alert(1)</script>", "a\udc80b".encode("utf-8", "surrogatepass"), "x" * 10_000]
HOSTILE += [
    "a\x00b\x1b[2J",
    "\u202egnp.evil",
    'a"]\nevil = 1\n[x."',
    "local",
    "anonymous",
    "",
    "a b",
]


class DeskPlugin(Plugin):
    @tool(read_only=True)
    async def look(self) -> str:
        """Look."""
        return "here"


@asynccontextmanager
async def administered(
    text: str = TEXT, name: str = "service.toml"
) -> AsyncGenerator[tuple[Host, str]]:
    """Serve a host by a file; yield it with the service's address."""
    file = Path(name)
    file.write_text(text, encoding="utf-8")
    sources = Sources(file)
    host = Host(sources.load(), installed=[PluginInfo(name="desk", load=lambda: DeskPlugin)])
    host.load()
    async with served_over_http(host, ReloadOptions(sources=sources)) as url:
        yield host, url


async def send(url: str, form: Mapping[str, Any], token: str = ROOT) -> httpx2.Response:
    """Send a form as the page would."""
    own = {"origin": url, "sec-fetch-site": "same-origin", **(bearer(token) if token else {})}
    async with patient_client(headers=own) as http:
        return await http.post(f"{url}/admin/tokens", data=form)


async def read(url: str, query: str = "", token: str = ROOT) -> str:
    async with patient_client(headers=bearer(token)) as http:
        return unescape((await http.get(f"{url}/admin/tokens{query}")).text)


async def status_of(url: str, token: str, path: str = "/health") -> int:
    async with patient_client(headers=bearer(token) if token else {}) as http:
        return (await http.get(url + path)).status_code


def confirmation(page: httpx2.Response) -> dict[str, list[str]]:
    """Return the form by which a page asks for a confirmation."""
    assert page.status_code == 200
    assert "Nothing is changed yet" in page.text
    fields: dict[str, list[str]] = {}
    for name, text in re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', page.text):
        fields.setdefault(unescape(name), []).append(unescape(text))
    return fields


def secret_of(page: httpx2.Response) -> str:
    return re.findall(r'<pre class="code secret">(.*)</pre>', page.text)[0]


def file_text() -> str:
    return Path("service.toml").read_text("utf-8")


def audited() -> list[dict[str, Any]]:
    lines = map(json.loads, Path("audit.jsonl").read_text("utf-8").splitlines())
    return [line for line in lines if line["event"] == "configuration changed"]


def in_days(days: int) -> str:
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%dT%H:%M}"


async def test_the_list_has_all_but_the_hashes(monkeypatch: pytest.MonkeyPatch):
    variable = "STANDARDS_MCP_SERVER__AUTH__TOKENS__NODE__SHA256"
    monkeypatch.setenv(variable, token_hash(BOB))
    expires = 'expires = "2031-01-01T00:00:00Z"\n'
    async with administered(TEXT + expires) as (_, url):
        page = await read(url)
        refused = await send(url, {"action": "revoke", "name": "node"})
    for shown in ("root", "you use it now", "teacher", "2031-01-01T00:00:00Z", "service.toml:11"):
        assert shown in page, shown
    assert "environment" in page
    assert "It is not in the configuration file" in page
    assert not re.search("[0-9a-f]{64}", page)
    assert 'aria-label="Revoke node"' not in page
    assert refused.status_code == 409
    assert "a variable or --set overrides the file" in refused.text


async def test_a_new_token_is_shown_once_and_kept_nowhere(caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    async with administered() as (_, url):
        made = await send(url, {**MAKE, "expires": in_days(2)})
        secret = secret_of(made)
        assert made.headers["cache-control"] == "no-store"
        assert await status_of(url, secret) == 200
        assert await status_of(url, secret, "/admin") == 403
        assert (await send(url, {**MAKE, "expires": in_days(2)})).status_code == 409
        pages = await read(url) + await read(url, "?changed=eve")
    assert "eve expires at 20" in pages
    logs = caplog.text + repr([vars(record) for record in caplog.records])
    for kept in (pages, file_text(), Path("audit.jsonl").read_text("utf-8"), logs):
        assert secret not in kept
    (line,) = audited()
    assert (line["caller"], line["action"], line["token"]) == ("root", "auth token create", "eve")
    assert line["scopes"] == ["teacher"]
    assert file_text().startswith(TEXT[:80])
    assert "# of the machine's owner" in file_text()
    assert f'sha256 = "{token_hash(secret)}"' in file_text()


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
async def test_a_hostile_name_is_refused_in_every_form(name: str | bytes):
    async with administered() as (_, url):
        for action in ("create", "expire", "expire now", "revoke"):
            refused = await send(url, {**MAKE, "action": action, "name": name})
            assert refused.status_code == 409, action
            assert "Nothing is changed" in refused.text
            assert "<script" not in refused.text
            assert not set("\x00\x1b\u202e") & set(refused.text)
        async with patient_client(headers=bearer(ROOT)) as http:
            page = await http.get(f"{url}/admin/tokens", params={"changed": name})
        assert "<script" not in page.text
    assert file_text() == TEXT
    assert audited() == []


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"scope": []}, "Choose at least one scope"),
        ({"scope": ["teacher", "root"]}, "There is no scope 'root'"),
        ({"name": "ann"}, "A token 'ann' exists"),
        ({"expires": "2001-01-01T00:00"}, "is past"),
        ({"expires": "tomorrow"}, "Give the time as"),
        ({"expires": "0001-01-01T00:00+14:00"}, "Give the time as"),
        ({"action": "expire", "name": "ann", "expires": "9999-99-99"}, "Give the time as"),
        ({"action": "revoke", "name": "zoe"}, "There is no token 'zoe'"),
        ({"action": "expire", "name": "zoe"}, "There is no token 'zoe'"),
    ],
)
async def test_a_wrong_field_is_named_and_what_was_entered_stays(form: dict[str, Any], why: str):
    async with administered() as (_, url):
        refused = await send(url, {**MAKE, **form})
        assert refused.status_code == 409
        assert why in unescape(refused.text)
        if "action" not in form:
            assert f'value="{form.get("name", "eve")}"' in refused.text
            assert 'value="teacher" checked' in refused.text or form.get("scope") == []
        assert (await send(url, {**MAKE, "action": "burn"})).status_code == 400
    assert file_text() == TEXT


async def test_expiry_is_changed_for_a_time_for_now_and_for_never():
    async with administered() as (host, url):
        later = in_days(3)
        form = {"action": "expire", "name": "ann", "expires": later}
        assert (await send(url, form)).headers["location"] == "tokens?changed=ann"
        assert host.settings.server.auth.tokens["ann"].expires == f"{later}:00Z"
        assert await status_of(url, ANN) == 200
        asked = await send(url, {"action": "expire now", "name": "ann"})
        assert "refused at once" in asked.text
        assert await status_of(url, ANN) == 200
        assert (await send(url, confirmation(asked))).status_code == 303
        assert await status_of(url, ANN) == 401
        assert "ann expired at" in await read(url, "?changed=ann")
        assert (await send(url, {**form, "expires": ""})).status_code == 303
        assert await status_of(url, ANN) == 200
    assert file_text() == TEXT
    assert [line["expires"] is None for line in audited()] == [False, False, True]


async def test_a_revoked_token_loses_its_session_and_its_stream_at_once():
    async with administered() as (host, url), patient_client(base_url=url, timeout=None) as client:
        session = await open_session(client, ANN)
        async with client.stream("GET", "/mcp", headers=session) as stream:
            asked = await send(url, {"action": "revoke", "name": "ann"})
            assert "its sessions end" in asked.text
            assert "You use this token" not in asked.text
            assert file_text() == TEXT
            assert (await send(url, confirmation(asked))).status_code == 303
            with anyio.fail_after(WAIT):
                assert [line async for line in stream.aiter_lines()] == []
        assert (await client.post("/mcp", json=rpc("ping"), headers=session)).status_code == 401
        assert "ann" not in host.settings.server.auth.tokens
        assert "no token of this name any more: ann" in await read(url, "?changed=ann")


@pytest.mark.parametrize(
    ("text", "is_last"), [(TEXT, True), (WITH_BOB, False), (TEXT + OIDC, False)]
)
@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"action": "revoke"}, 401),
        ({"action": "expire now"}, 401),
        ({"action": "expire", "expires": in_days(9)}, 200),
    ],
)
async def test_nobody_locks_themselves_out_silently(
    text: str, is_last: bool, form: dict[str, str], status: int
):
    async with administered(text) as (_, url):
        asked = await send(url, {**form, "name": "root"})
        assert "You use this token now." in asked.text
        assert ("It is valid until" in asked.text) == (status == 200)
        assert ("nobody can open this page" in asked.text) == is_last
        assert file_text() == text
        assert (await send(url, confirmation(asked))).status_code == 303
        assert await status_of(url, ROOT) == status
        assert await status_of(url, "", "/mcp") == 401
    assert ("required = true" in file_text()) == (form["action"] == "revoke")


async def test_what_expires_now_may_be_confirmed_later():
    async with administered() as (_, url):
        asked = confirmation(await send(url, {"action": "expire now", "name": "root"}))
        earlier = {**asked, "action": "expire", "expires": "2001-01-01T00:00"}
        assert (await send(url, earlier)).status_code == 303
        assert await status_of(url, ROOT) == 401


async def test_the_last_token_leaves_the_service_closed():
    only = TEXT.partition("\n[server.auth.tokens.ann]")[0]
    async with administered(only) as (host, url):
        asked = await send(url, {"action": "revoke", "name": "root"})
        assert (await send(url, confirmation(asked))).status_code == 303
        assert host.settings.server.auth.tokens == {}
        async with patient_client() as http:
            assert (await http.get(f"{url}/admin")).status_code == 401
    assert Sources(Path("service.toml")).load().settings.server.auth.is_required


async def test_the_first_token_of_an_open_service_is_confirmed():
    async with administered(OPEN) as (_, url):
        asked = await send(url, MAKE, token="")
        assert "From now on, every request needs a token" in asked.text
        assert "nobody can open this page" in asked.text
        asked = await send(url, {**MAKE, "scope": ["admin", "teacher"]}, token="")
        assert "nobody can open this page" not in asked.text
        assert file_text() == OPEN
        secret = secret_of(await send(url, confirmation(asked), token=""))
        assert await status_of(url, secret, "/admin") == 200
        assert await status_of(url, "", "/admin") == 401
    tokens = Sources(Path("service.toml")).load().settings.server.auth.tokens
    assert tokens["eve"].scopes == ("admin", "teacher")


async def test_a_confirmation_counts_only_for_the_effects_that_were_shown():
    async with administered(WITH_BOB) as (_, url):
        asked = await send(url, {"action": "revoke", "name": "root"})
        assert "nobody" not in asked.text
        first = confirmation(asked)
        bob = await send(url, {"action": "revoke", "name": "bob"})
        assert (await send(url, confirmation(bob))).status_code == 303
        again = await send(url, first)
        assert "nobody can open this page" in again.text
        assert await status_of(url, ROOT) == 200
        assert (await send(url, {**first, "name": "ann"})).text.count("Nothing is changed yet")


async def test_two_admins_at_once_make_one_token_of_a_name_and_keep_each_other():
    answers: list[httpx2.Response] = []

    async def make(url: str, token: str) -> None:
        answers.append(await send(url, MAKE, token))

    async with administered(WITH_BOB) as (host, url):
        async with anyio.create_task_group() as tasks:
            for token in (ROOT, BOB) * 3:
                tasks.start_soon(make, url, token)
        assert sorted(each.status_code for each in answers) == [200, *[409] * 5]
        secret = secret_of(next(each for each in answers if each.status_code == 200))
        assert await status_of(url, secret) == 200
        forms = {
            ROOT: confirmation(await send(url, {"action": "revoke", "name": "bob"}, ROOT)),
            BOB: confirmation(await send(url, {"action": "revoke", "name": "root"}, BOB)),
        }
        async with anyio.create_task_group() as tasks:
            for token, form in forms.items():
                tasks.start_soon(send, url, form, token)
        assert len(host.settings.server.auth.tokens.keys() & {"root", "bob"}) == 1


async def test_an_edit_of_the_file_by_hand_is_kept_and_a_token_that_went_is_named():
    async with administered() as (_, url):
        asked = confirmation(await send(url, {"action": "revoke", "name": "ann"}))
        Path("service.toml").write_text(f"# mine\n{TEXT.partition('[server.auth.tokens.ann]')[0]}")
        gone = await send(url, asked)
        assert gone.status_code == 409
        assert "There is no token 'ann', or no longer." in unescape(gone.text)
        assert (await send(url, MAKE)).status_code == 200
    assert file_text().startswith("# mine\n")


async def test_a_file_that_cannot_be_written_makes_no_token():
    async with administered(name=f"{'long' * 61}.toml") as (host, url):
        refused = await send(url, MAKE)
        assert refused.status_code == 409
        assert "cannot be changed" in refused.text
        assert "See who may write the file" in refused.text
        assert "smcp_" not in refused.text
        assert "eve" not in host.settings.server.auth.tokens


async def test_a_revocation_that_the_service_cannot_take_over_is_reported():
    async with administered() as (_, url):
        asked = confirmation(await send(url, {"action": "revoke", "name": "ann"}))
        file = Path("service.toml")
        file.write_text(f"{TEXT}\n[plugins.missing]\nenabled = true\n", "utf-8")
        refused = await send(url, asked)
        assert refused.status_code == 409
        assert "The file is changed, but the configuration is refused" in unescape(refused.text)
        assert "no such plugin is installed" in refused.text
        assert await status_of(url, ANN) == 200
    assert "tokens.ann" not in file_text()


async def test_the_page_is_for_admins_and_for_its_own_forms_only():
    async with administered() as (_, url), patient_client() as http:
        address, own = f"{url}/admin/tokens", {"origin": url}
        for token, status in (("", 401), (ANN, 403)):
            headers = own | (bearer(token) if token else {})
            assert (await http.get(address, headers=headers)).status_code == status
            assert (await http.post(address, data=MAKE, headers=headers)).status_code == status
        for origin in ("null", "https://other.example"):
            headers = bearer(ROOT) | {"origin": origin}
            assert (await http.post(address, data=MAKE, headers=headers)).status_code == 403
        refused = await http.post(address, data=MAKE, headers=bearer(ROOT))
        assert refused.status_code == 403
    assert file_text() == TEXT
