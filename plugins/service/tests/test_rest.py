"""The REST API: tools called by programs that do not speak MCP."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from pydantic import Field
from support.hosts import MakeHost
from support.http import auth_of, bearer, requests_to, served_over_http
from support.schemathesis import check_openapi
from support.waiting import WAIT, until

from standards_mcp import (
    ApiError,
    CallContext,
    NotFoundError,
    Plugin,
    ToolError,
    ToolResult,
    tool,
)
from standards_mcp.host import Host
from standards_mcp_lookup import LookupPlugin
from standards_mcp_search import SearchPlugin
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ANN = new_token()
FAILURES = {
    "missing": (NotFoundError("there is no such shelf"), 404, "not_found"),
    "broken": (ApiError("the library's service is down", retry_after=7.2), 502, "api_error"),
    "crashing": (RuntimeError("secret detail"), 500, "internal_error"),
    "refusing": (ToolError("not on Sundays"), 422, "tool_error"),
    "mistaken": (ValueError("give the title of a book"), 400, "invalid_input"),
}


class ShelfPlugin(Plugin):
    """Tools that answer in several forms, and ones that fail."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting, self.ended = anyio.Event(), anyio.Event()

    @tool(name="shelf.find", read_only=True)
    def find(
        self, title: Annotated[str, Field(max_length=20)], copies: Annotated[int, Field(ge=1)] = 1
    ) -> dict[str, int | str]:
        """Find."""
        return {"title": title, "copies": copies}

    @tool
    async def say(self, context: CallContext) -> str:
        """Say."""
        return f"hello {context.caller}"

    @tool
    def note(self, text: str = "Cut to half. Ask for less.") -> ToolResult:
        """Note."""
        return ToolResult(text="", structured={"count": 1}, notes=(text,))

    @tool
    def odd(self) -> ToolResult:
        """Odd."""
        return ToolResult(text="no room", structured={"error_type": "disabled"}, is_error=True)

    @tool(rate_limit="1/day")
    def rare(self) -> list[int]:
        """Rare."""
        return [1, 2]

    @tool(timeout=0.05)
    async def slow(self) -> None:
        """Slow."""
        await anyio.sleep(90)

    @tool
    async def wait(self) -> None:
        """Wait."""
        self.waiting.set()
        try:
            await anyio.sleep(90)
        finally:
            self.ended.set()

    @tool
    def fail(self, how: str) -> None:
        """Fail."""
        raise FAILURES[how][0]


@pytest.fixture
def make_shelf(make_host: MakeHost) -> MakeHost:
    def make(*, tools: Any = None, **server: Any) -> Host:
        server = {"port": 0, "rest": True, **server}
        return make_host({"shelf": ShelfPlugin}, server=server, tools=tools or {})

    return make


@pytest.fixture
async def client(make_shelf: MakeHost) -> AsyncGenerator[httpx2.AsyncClient]:
    async with requests_to(make_shelf()) as found:
        yield found


async def test_a_tool_answers_with_its_structured_content(client: httpx2.AsyncClient):
    for path in ("/tools/shelf_find", "/tools/shelf.find", "/shelf.find"):
        answer = await client.post(path, json={"title": "Emma", "copies": 2})
        assert answer.status_code == 200
        assert answer.json() == {"title": "Emma", "copies": 2}
    assert (await client.post("/tools/rare", json={})).json() == {"result": [1, 2]}


async def test_tools_are_listed_with_schemas_and_annotations(client: httpx2.AsyncClient):
    listed = (await client.get("/tools")).json()["tools"]
    tools = {each["name"]: each for each in listed}
    assert tools["shelf_find"]["description"] == "Find."
    assert tools["shelf_find"]["annotations"]["read_only_hint"] is True
    assert tools["shelf_find"]["input_schema"]["required"] == ["title"]
    assert tools["rare"]["output_schema"]["required"] == ["result"]


async def test_without_structure_the_answer_has_content_blocks(client: httpx2.AsyncClient):
    answer = await client.post("/tools/say", json={})
    assert answer.json() == {"content": [{"type": "text", "text": "hello anonymous"}]}


async def test_the_notes_of_a_structured_answer_are_in_a_header(client: httpx2.AsyncClient):
    answer = await client.post("/tools/note", json={})
    assert answer.json() == {"count": 1}
    assert answer.headers["standards-mcp-notes"] == "Cut to half. Ask for less."
    odd = await client.post("/tools/note", json={"text": "a\x00\r\nb\x1b\u00e9" + "x" * 100_000})
    assert odd.headers["standards-mcp-notes"].startswith(r"a\u0000 b\u001b?xxx")
    assert len(odd.headers["standards-mcp-notes"]) <= 1000


async def test_each_failure_has_a_status_and_the_envelope(client: httpx2.AsyncClient):
    for how, (error, status, kind) in FAILURES.items():
        answer = await client.post("/tools/fail", json={"how": how})
        assert answer.status_code == status
        body = answer.json()
        assert (body["success"], body["results"], body["error_type"]) == (False, [], kind)
        assert (str(error) in body["message"]) == (how != "crashing")
        assert answer.headers.get("retry-after") == ("8" if how == "broken" else None)


async def test_failures_of_another_form_get_the_common_envelope(client: httpx2.AsyncClient):
    odd, slow = [await client.post(f"/tools/{name}", json={}) for name in ("odd", "slow")]
    assert (odd.status_code, odd.json()["success"]) == (422, False)
    message = 'no room\n{"error_type":"disabled"}'
    assert (odd.json()["message"], odd.json()["error_type"]) == (message, "tool_error")
    assert (slow.status_code, slow.json()["error_type"]) == (504, "timeout")
    _, rare = [await client.post("/tools/rare", json={}) for _ in range(2)]
    assert rare.status_code == 429
    assert int(rare.headers["retry-after"]) > 80_000


async def test_arguments_that_do_not_fit_the_schema_are_refused(client: httpx2.AsyncClient):
    headers = {"content-type": "application/json; charset=utf-8"}
    for body, says in (
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"title": "\\ud800"}', "not JSON"),
        (b"[" * 10_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "'title' is a required property"),
        (b'{"title": 1}', "title"),
        (b'{"title": "Emma", "copies": "2"}', "copies"),
        (b'{"title": "Emma", "copies": 0}', "copies"),
        (b'{"title": "Emma", "shelf": 1}', "shelf"),
        (b'{"title": "Emma", "shelf": [{"at": -1e999}]}', "number that is not finite"),
    ):
        answer = await client.post("/tools/shelf_find", content=body, headers=headers)
        assert answer.status_code == 400, body[:50]
        assert answer.json()["error_type"] == "invalid_input"
        assert says in answer.json()["message"]


async def test_other_requests_are_refused_by_their_kind(make_shelf: MakeHost):
    async with requests_to(make_shelf(max_request_bytes=50)) as client:
        refused = {
            (await client.post("/tools/say", content=b"{}")).status_code: 415,
            (await client.post("/tools/say", json={"a": "b" * 100})).status_code: 413,
            (await client.post("/tools/unknown", json={})).status_code: 404,
            (await client.post("/tools", json={})).status_code: 405,
            (await client.get("/tools/say")).status_code: 405,
        }
        assert all(status == wanted for status, wanted in refused.items())
        otherwise_written = {"content-type": "Application/JSON; charset=UTF-8"}
        said = await client.post("/tools/say", content=b"{}", headers=otherwise_written)
        assert said.status_code == 200
        for answer in (await client.get("/tools/say"), await client.get("/else")):
            assert answer.json()["error_type"] in ("method_not_allowed", "not_found")


async def test_requests_that_are_refused_before_a_call_count_against_the_rate_limit(
    make_shelf: MakeHost,
):
    json_type = {"content-type": "application/json"}
    many = b"[" + b"1," * 30_000 + b"1]"
    async with (
        served_over_http(make_shelf(tools={"rate_limit": "3/hour"})) as url,
        httpx2.AsyncClient(base_url=url) as client,
    ):
        sent = [(b"{}", {}), (b"{", json_type), (many, json_type), (b"{}", json_type)]
        answers = [
            (await client.post("/tools/say", content=body, headers=headers)).status_code
            for body, headers in sent
        ]
        assert answers == [415, 400, 413, 429]
        unknown = [
            (await client.post(f"/tools/unknown{at}", json={})).status_code for at in range(4)
        ]
        assert unknown == [404, 404, 404, 429]


async def test_a_tool_that_is_switched_off_is_forbidden(make_shelf: MakeHost):
    async with requests_to(make_shelf(tools={"disable": ["say"]})) as client:
        answer = await client.post("/tools/say", json={})
        assert (answer.status_code, answer.json()["error_type"]) == (403, "disabled")
        listed = (await client.get("/tools")).json()["tools"]
        assert "say" not in [each["name"] for each in listed]


async def test_a_client_that_leaves_cancels_its_call(make_shelf: MakeHost):
    host = make_shelf()
    async with requests_to(host) as client:
        await until(lambda: host.manager.records["shelf"].plugin is not None)
        plugin: Any = host.manager.records["shelf"].plugin
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(client.post, "/tools/wait", json={}))
            await plugin.waiting.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(WAIT):
            await plugin.ended.wait()


async def test_tokens_and_scopes_count_as_over_mcp(make_shelf: MakeHost):
    auth = auth_of({"finder": ["say", "shelf_*"]}, ann=(ANN, "finder"))
    async with requests_to(make_shelf(auth=auth), headers=bearer(ANN)) as client:
        said = await client.post("/tools/say", json={})
        assert said.json()["content"][0]["text"] == "hello ann"
        for path in ("/tools/rare", "/tools/fail", "/x.rare"):
            assert (await client.post(path, json={})).status_code == 404
        described = (await client.get("/openapi.json")).json()
        paths = ["/tools", "/tools/shelf_find", "/shelf.find", "/tools/say"]
        assert list(described["paths"]) == paths
        assert described["security"] == [{"token": []}]
        for path in ("/tools", "/openapi.json", "/docs", "/docs/assets/swagger-ui.css"):
            assert (await client.get(path)).status_code == 200
            assert (await client.get(path, headers=bearer("wrong"))).status_code == 401


async def test_a_browser_asks_for_the_token_as_a_password(make_shelf: MakeHost):
    host = make_shelf(auth=auth_of(ann=ANN))
    async with requests_to(host, headers={"accept": "text/html,*/*"}) as client:
        challenges = (await client.get("/docs")).headers.get_list("www-authenticate")
        assert [each.split()[0] for each in challenges] == ["Bearer", "Basic"]
        given = {"authorization": f"Basic {b64encode(f'anybody:{ANN}'.encode()).decode()}"}
        page = await client.get("/docs", headers=given)
        assert "swagger-ui-bundle.js" in page.text
        assert (await client.post("/tools/say", json={}, headers=given)).status_code == 200
        for wrong in (ANN, b64encode(ANN.encode()).decode(), "%%%", b64encode(b"\xff:\xff")):
            given = {"authorization": f"Basic {wrong}"}
            assert (await client.get("/docs", headers=given)).status_code == 401


@pytest.mark.slow
async def test_schemathesis_finds_nothing_in_the_standards_tools(
    make_host: MakeHost, tmp_path: Path
):
    from standards_mcp_catalog.plugin import CatalogPlugin

    plugins = {"catalog": CatalogPlugin, "lookup": LookupPlugin, "search": SearchPlugin}
    host = make_host(plugins, server={"port": 0, "rest": True, "auth": auth_of(ann=ANN)})
    # A tool may refuse arguments for reasons that no schema tells, such as an unknown grade.
    accepted = ("2xx", "400", "404", "422")
    async with served_over_http(host) as url:
        printed = await check_openapi(url, tmp_path, accepted, token=ANN)
    assert "3 selected" in printed
    assert json.dumps(ANN) not in printed
