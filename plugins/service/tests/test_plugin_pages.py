"""Pages of plugins: at the root of the service, for every caller, with the tools of their token."""

from __future__ import annotations

import json
import logging
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from support.hosts import MakeHost
from support.http import auth_of, bearer, requests_to

from standards_mcp import CallContext, Plugin, Route, hookimpl, tool
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import Status
from standards_mcp.server.reload import apply_settings
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ALL, FINDER, CLERK = new_token(), new_token(), new_token()
SCOPES = {"finder": ["desk_find"], "clerk": {"profile": "clerks"}}
AUTH = auth_of(SCOPES, ann=ALL, bob=(FINDER, "finder"), cleo=(CLERK, "clerk"))
PROFILES = {"clerks": {"plugins": ["other"]}}
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
OWN_POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'"


class DeskPlugin(Plugin):
    """A page with tools, one for holders of a scope, and ones that fail."""

    @tool(name="desk.find", read_only=True)
    async def find(self, context: CallContext, what: str = "pen") -> dict[str, str]:
        """Find."""
        return {"what": what, "caller": context.caller}

    @tool(read_only=True, rate_limit="2/day")
    async def rare(self) -> dict[str, str]:
        """Rare."""
        return {}

    @tool(read_only=True, timeout=0.05)
    async def slow(self) -> None:
        """Slow."""
        await anyio.sleep(90)

    @tool
    async def burn(self) -> dict[str, str]:
        """Burn."""
        return {"burnt": "all"}

    async def show(self, request: Request) -> Response:
        caller, tools = request.user.display_name, request.state.tools
        return HTMLResponse(f"<h1>{caller}</h1>{','.join(tools)}")

    async def drawer(self, _: Request) -> Response:
        return PlainTextResponse("paper", headers={"content-security-policy": OWN_POLICY})

    async def fail(self, _: Request) -> Response:
        raise RuntimeError("secret detail")

    async def hang(self, _: Request) -> Response:
        await anyio.sleep(90)
        return Response()

    @hookimpl
    def register_routes(self) -> list[Route]:
        tools = ("desk.find", "rare", "slow", "gone")
        return [
            Route(path="/desk", function=self.show, is_page=True, tools=tools),
            Route(path="/drawer", function=self.drawer, is_page=True, scope="keys"),
            Route(path="/broken", function=self.fail, is_page=True),
            Route(path="/hanging", function=self.hang, is_page=True, timeout=0.05),
        ]


@pytest.fixture
def make_desk(make_host: MakeHost) -> MakeHost:
    def make(**server: Any) -> Host:
        server = {"port": 0, "auth": AUTH, **server}
        return make_host({"desk": DeskPlugin}, server=server, profiles=PROFILES)

    return make


async def statuses(client: httpx2.AsyncClient, *paths: str, **headers: str) -> list[int]:
    return [(await client.get(path, headers=headers)).status_code for path in paths]


async def test_every_caller_opens_a_page_and_learns_the_tools_of_their_token(make_desk: MakeHost):
    async with requests_to(make_desk()) as client:
        seen = [(await client.get("/desk", headers=bearer(each))).text for each in (ALL, FINDER)]
        assert seen == ["<h1>ann</h1>desk.find,rare,slow", "<h1>bob</h1>desk.find"]
        head = await client.head("/desk", headers=bearer(ALL))
        assert (head.status_code, head.text) == (200, "")


async def test_a_page_needs_a_token_which_browsers_send_as_a_password(make_desk: MakeHost):
    async with requests_to(make_desk()) as client:
        for headers in ({}, bearer("wrong")):
            page = await client.get("/desk", headers=BROWSER | headers)
            assert page.status_code == 401
            challenges = page.headers.get_list("www-authenticate")
            assert [each.split()[0] for each in challenges] == ["Bearer", "Basic"]
            call = await client.post("/desk/tools/desk.find", json={}, headers=headers)
            assert call.status_code == 401
        password = {"authorization": f"Basic {b64encode(f'any:{FINDER}'.encode()).decode()}"}
        assert "bob" in (await client.get("/desk", headers=BROWSER | password)).text
        call = await client.post("/desk/tools/desk.find", json={"what": "ink"}, headers=password)
        assert call.json() == {"what": "ink", "caller": "bob"}


async def test_a_page_calls_its_own_tools_only_as_far_as_the_token_allows(
    make_desk: MakeHost, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    audit = tmp_path / "audit.jsonl"
    cases = [
        (ALL, "desk/tools/desk.find", 200, "ok"),
        (ALL, "desk/tools/rare", 200, "ok"),
        (ALL, "desk/tools/slow", 504, "timeout"),
        (ALL, "desk/tools/burn", 404, "not_served"),  # a tool, but none of this page
        (ALL, "desk/tools/gone", 404, "not_served"),
        (ALL, "desk/tools/desk_find", 404, "not_served"),
        (FINDER, "desk/tools/desk.find", 200, "ok"),
        (FINDER, "desk/tools/rare", 404, "not_served"),
    ]
    async with requests_to(make_desk(audit={"path": str(audit)})) as client:
        for token, path, status, _ in cases:
            answer = await client.post(f"/{path}", json={}, headers=bearer(token))
            assert answer.status_code == status, (path, answer.text)
    lines = [json.loads(line) for line in audit.read_text(encoding="utf-8").splitlines()]
    recorded = [
        (line["caller"], line["name"], line.get("error_type", line["outcome"]))
        for line in lines
        if line["event"] == "call"
    ]
    names = {ALL: "ann", FINDER: "bob"}
    assert recorded == [
        (names[token], path.rpartition("/")[2], outcome) for token, path, _, outcome in cases
    ]
    logged = [vars(each) for each in caplog.records if each.message == "tool call"]
    assert [line["caller"] for line in logged] == [names[token] for token, *_ in cases]


async def test_limits_count_for_pages_as_for_other_calls(make_desk: MakeHost):
    async with requests_to(make_desk(rest=True), headers=bearer(ALL)) as client:
        paths = ("/tools/rare", "/desk/tools/rare", "/desk/tools/rare")
        answers = [await client.post(path, json={}) for path in paths]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_a_call_of_an_unknown_tool_counts_against_the_general_limit(make_host: MakeHost):
    tools = {"rate_limit": "2/day"}
    host = make_host({"desk": DeskPlugin}, server={"port": 0}, tools=tools)
    async with requests_to(host) as client:
        answers = [await client.post("/desk/tools/burn2", json={}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [404, 404, 429]


async def test_a_page_with_a_scope_is_for_its_holders(make_host: MakeHost):
    auth = auth_of({"keys": [], "all": ["*"]}, ann=(ALL, "keys"), bob=(FINDER, "all"))
    host = make_host({"desk": DeskPlugin}, server={"port": 0, "auth": auth})
    async with requests_to(host) as client:
        for token, status, links in ((ALL, 200, 4), (FINDER, 403, 3)):
            assert await statuses(client, "/drawer", **bearer(token)) == [status]
            start = await client.get("/", headers=BROWSER | bearer(token))
            assert len(re.findall(r'href="(desk|drawer|broken|hanging)"', start.text)) == links
        call = await client.post("/drawer/tools/burn", json={}, headers=bearer(FINDER))
        assert call.status_code == 404


async def test_a_profile_of_the_caller_hides_the_pages_of_a_plugin(make_desk: MakeHost):
    async with requests_to(make_desk(), headers=bearer(CLERK)) as client:
        assert await statuses(client, "/desk", "/drawer") == [404, 404]
        assert (await client.post("/desk/tools/desk.find", json={})).status_code == 404


async def test_a_page_that_fails_or_hangs_costs_only_itself(
    make_desk: MakeHost, caplog: pytest.LogCaptureFixture
):
    async with requests_to(make_desk(), headers=bearer(ALL)) as client:
        broken, hanging = await client.get("/broken"), await client.get("/hanging")
        assert await statuses(client, "/desk") == [200]
    assert (broken.status_code, hanging.status_code) == (500, 504)
    assert "secret detail" not in broken.text
    assert broken.headers["cache-control"] == "no-store"
    assert "secret detail" in caplog.text


async def test_pages_and_their_calls_are_protected(make_desk: MakeHost):
    async with requests_to(make_desk(), headers=bearer(ALL)) as client:
        answers = [
            await client.get("/desk"),
            await client.get("/drawer"),
            await client.post("/desk/tools/desk.find", json={}),
            await client.post("/desk/tools/gone", json={}),
        ]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answers[0].headers["content-security-policy"].startswith("default-src 'none';")
    assert answers[1].headers["content-security-policy"] == OWN_POLICY


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"host": "evil.example"}, b"{}", 421),
        ({"origin": "https://evil.example"}, b"{}", 403),
        ({"origin": "null"}, b"{}", 403),
        ({"content-type": "text/plain"}, b"{}", 415),
        ({"content-type": "application/x-www-form-urlencoded"}, b"what=ink", 415),
        ({}, b'{"what": ', 400),
        ({}, b"[]", 400),
        ({}, b'{"what": 7}', 400),
        ({}, b'{"what": "ink", "more": 1}', 400),
        ({}, b'{"what": "%s"}' % (b"x" * 600), 413),
        ({}, b"[%s]" % b",".join([b"1"] * 150), 413),
    ],
    ids=range(11),
)
async def test_calls_of_a_page_have_the_guards_of_the_rest_api(
    make_host: MakeHost, headers: dict[str, str], body: bytes, status: int
):
    server = {"port": 0, "max_request_bytes": 500}
    tools = {"max_argument_values": 20}
    host = make_host({"desk": DeskPlugin}, server=server, tools=tools)
    async with requests_to(host) as client:
        sent = {"content-type": "application/json"} | headers
        answer = await client.post("/desk/tools/desk.find", content=body, headers=sent)
        assert answer.status_code == status, answer.text
        page = await client.get("/desk", headers=headers)
        assert page.status_code == (status if status in (403, 421) else 200)


async def test_other_paths_are_answered_as_without_pages(make_desk: MakeHost):
    requests = [
        ("GET", "/nothing", 404),
        ("POST", "/nothing", 404),
        ("POST", "/nothing/tools/rare", 404),
        ("GET", "/desk/", 404),
        ("GET", "/desk/more", 404),
        ("GET", "/desk/tools/rare", 405),
        ("POST", "/desk", 405),
        ("GET", "//desk", 404),
        ("GET", "/Desk", 404),
        ("POST", "/health", 405),
        ("GET", "/plugins/desk/desk", 404),
        ("GET", "/plugins/desk", 404),
    ]
    async with requests_to(make_desk(), headers=bearer(ALL)) as client:
        for method, path, status in requests:
            answer = await client.request(method, path)
            assert answer.status_code == status, (method, path)
    async with requests_to(make_desk(pages=False), headers=bearer(ALL)) as client:
        for method, path, status in requests:
            answer = await client.request(method, path)
            expected = 404 if path.startswith("/desk") else status
            assert answer.status_code == expected, (method, path)


async def test_pages_come_and_go_with_the_configuration(make_desk: MakeHost):
    host = make_desk()
    async with requests_to(host, headers=BROWSER | bearer(ALL)) as client:

        async def served() -> tuple[list[int], bool]:
            call = await client.post("/desk/tools/desk.find", json={})
            start = await client.get("/")
            return [*(await statuses(client, "/desk")), call.status_code], "desk" in start.text

        def reload(server: dict[str, Any], **settings: Any) -> None:
            server = {"port": 0, "auth": AUTH, **server}
            state = {"state_dir": host.settings.state_dir, "profiles": PROFILES}
            apply_settings(host, LoadedSettings(Settings(server=server, **state, **settings), None))

        assert await served() == ([200, 200], True)
        for settings in ({"server": {"pages": False}}, {"plugins": {"desk": {"enabled": False}}}):
            reload(**{"server": {}, **settings})
            assert await served() == ([404, 404], False)
            reload({})
            assert await served() == ([200, 200], True)


async def test_a_renamed_tool_keeps_its_name_for_the_page(make_host: MakeHost):
    tools = {"overrides": {"desk.find": {"name": "search"}}}
    host = make_host({"desk": DeskPlugin}, server={"port": 0}, tools=tools)
    async with requests_to(host) as client:
        assert "desk.find" in (await client.get("/desk")).text
        assert (await client.post("/desk/tools/desk.find", json={})).status_code == 200
        assert (await client.post("/desk/tools/search", json={})).status_code == 404


class OtherPlugin(Plugin):
    """A plugin with the page of another one."""

    async def show(self, _: Request) -> Response:
        return PlainTextResponse("other")

    @hookimpl
    def register_routes(self) -> list[Route]:
        return [Route(path="/desk", function=self.show, is_page=True)]


async def test_of_two_plugins_with_one_page_the_first_keeps_it(make_host: MakeHost):
    host = make_host({"desk": DeskPlugin, "other": OtherPlugin}, server={"port": 0})
    record = host.manager.records["other"]
    assert record.status is Status.FAILED
    assert "'GET /desk' already belongs to plugin 'desk'" in record.reason
    async with requests_to(host) as client:
        assert "anonymous" in (await client.get("/desk")).text
    off = {"desk": {"enabled": False}}
    plugins = {"desk": DeskPlugin, "other": OtherPlugin}
    async with requests_to(make_host(plugins, server={"port": 0}, plugins=off)) as client:
        assert (await client.get("/desk")).text == "other"
