"""Routes of plugins: behind the same rules as their tools, and without the app."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from support.hosts import MakeHost
from support.http import auth_of, bearer, patient_client, requests_to, served_over_http
from support.waiting import WAIT

from standards_mcp import NotFoundError, Plugin, Route, hookimpl
from standards_mcp.host import Host
from standards_mcp.loading.records import Status
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ANN, BOB = new_token(), new_token()


class ReportsPlugin(Plugin):
    """Routes that answer, and ones that fail in every way."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting, self.ended = anyio.Event(), anyio.Event()

    async def read(self, request: Request) -> Response:
        """Read a report."""
        number = request.path_params["number"]
        return JSONResponse({"report": number, "for": dict(request.query_params)})

    async def write(self, request: Request) -> Response:
        return PlainTextResponse((await request.body())[::-1], 201)

    async def write_later(self, request: Request) -> Response:
        await anyio.sleep(0.05)
        return await self.write(request)

    async def look(self, request: Request) -> Response:
        seen = {"keys": sorted(request.scope), "headers": sorted(request.headers)}
        who = {"user": request.user.display_name, "scopes": request.auth.scopes}
        return JSONResponse({**seen, **who, "url": request.url.path})

    async def fail(self, request: Request) -> Response:
        how = request.path_params["how"]
        if how == "missing":
            raise NotFoundError("there is no such report")
        if how == "teapot":
            raise HTTPException(418, "short and stout")
        if how == "crash":
            raise RuntimeError("secret detail")
        if how == "exit":
            raise SystemExit
        if how == "short":
            return Response(b"begun", headers={"content-length": "10"})
        if how == "nothing":
            return None  # type: ignore[return-value]
        return StreamingResponse(self.broken())

    async def broken(self) -> AsyncIterator[bytes]:
        yield b"begun"
        raise RuntimeError("in the midst")

    async def wait(self, _: Request) -> Response:
        self.waiting.set()
        try:
            await anyio.sleep(90)
        finally:
            self.ended.set()
        return Response()

    @hookimpl
    def register_routes(self) -> list[Route]:
        return [
            Route(path="/reports/{number:int}", function=self.read),
            Route(path="/reports", function=self.write, methods=("POST", "PUT")),
            Route(path="/later", function=self.write_later, methods=("POST",), timeout=WAIT),
            Route(path="/look", function=self.look, scope="reader"),
            Route(path="/fail/{how}", function=self.fail),
            Route(path="/rare", function=self.write, rate_limit="1/day"),
            Route(path="/slow", function=self.wait, timeout=0.05),
            Route(path="/wait", function=self.wait),
        ]


@pytest.fixture
def make_reports(make_host: MakeHost) -> MakeHost:
    def make(**server: Any) -> Host:
        return make_host({"reports": ReportsPlugin}, server={"port": 0, **server})

    return make


@pytest.fixture
async def client(make_reports: MakeHost) -> AsyncGenerator[httpx2.AsyncClient]:
    host = make_reports(max_request_bytes=100)
    async with (
        served_over_http(host) as url,
        patient_client(base_url=f"{url}/plugins/reports") as found,
    ):
        yield found


async def test_a_route_answers_below_the_name_of_its_plugin(client: httpx2.AsyncClient):
    answer = await client.get("/reports/7", params={"a": "b"})
    assert answer.json() == {"report": 7, "for": {"a": "b"}}
    assert (await client.head("/reports/7")).status_code == 200
    written = await client.post("/reports", content=b"abc")
    assert (written.status_code, written.text) == (201, "cba")
    later = await client.post("/later", content=b"abc")
    assert (later.status_code, later.text) == (201, "cba"), "the body waits until it is read"


async def test_other_paths_and_methods_are_refused(client: httpx2.AsyncClient):
    for method, path, status in (
        ("GET", "/reports/seven", 404),
        ("GET", "/else", 404),
        ("GET", "", 404),
        ("GET", "/", 404),
        ("GET", "/../books/all", 404),
        ("GET", "/%2e%2e/%2e%2e/health", 404),
        ("GET", "//reports/7", 404),
        ("POST", "/reports/7", 405),
        ("DELETE", "/reports", 405),
        ("OPTIONS", "/reports", 405),
        ("TRACE", "/look", 405),
    ):
        answer = await client.request(method, path)
        assert (answer.status_code, answer.json()["success"]) == (status, False), (method, path)
        if status == 405:
            allowed = "GET, HEAD" if path != "/reports" else "POST, PUT"
            assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    ("how", "status", "kind"),
    [
        ("missing", 404, "not_found"),
        ("teapot", 418, "tool_error"),
        ("crash", 500, "internal_error"),
        ("exit", 500, "internal_error"),
        ("nothing", 500, "internal_error"),
    ],
)
async def test_a_route_that_fails_answers_as_a_tool_does(
    client: httpx2.AsyncClient, how: str, status: int, kind: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    answer = await client.get(f"/fail/{how}")
    assert (answer.status_code, answer.json()["error_type"]) == (status, kind)
    assert "secret" not in answer.text
    if status == 500:
        (crash,) = [each for each in caplog.records if getattr(each, "incident", "")]
        assert crash.incident in answer.json()["message"]
        assert crash.plugin == "reports"
    (line,) = [each for each in caplog.records if each.message == "route call"]
    assert (line.plugin, line.route) == ("reports", "GET /plugins/reports/fail/{how}")
    assert line.outcome == (kind if how != "teapot" else "ok")


@pytest.mark.parametrize("how", ["later", "short"])
async def test_an_answer_that_breaks_in_the_midst_ends_the_connection(
    client: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture, how: str
):
    with pytest.raises(httpx2.RemoteProtocolError):
        await client.get(f"/fail/{how}")
    assert any(getattr(each, "incident", "") for each in caplog.records)
    assert (await client.get("/reports/1")).status_code == 200


async def test_routes_have_the_same_limits_as_tools(client: httpx2.AsyncClient):
    assert (await client.get("/slow")).status_code == 504
    assert (await client.get("/rare")).status_code == 201
    again = await client.get("/rare")
    assert (again.status_code, int(again.headers["retry-after"]) > 1) == (429, True)
    large = await client.post("/reports", content=b"a" * 101)
    assert (large.status_code, large.json()["error_type"]) == (413, "too_large")


async def test_a_client_that_leaves_cancels_the_route(make_reports: MakeHost):
    host = make_reports()
    async with requests_to(host) as client:
        plugin: Any = host.manager.records["reports"].plugin
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.get, "/plugins/reports/wait")
            await plugin.waiting.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(WAIT):
            await plugin.ended.wait()


async def test_a_route_needs_the_scope_that_it_names_or_that_of_its_plugin(make_reports: MakeHost):
    scopes = {"reader": [], "reports": [], "everything": ["*"]}
    auth = auth_of(scopes, ann=(ANN, "reader", "everything"), bob=(BOB, "reports"))
    cases = [
        *((bearer(ANN), path, status) for path, status in (("look", 200), ("reports/7", 403))),
        *((bearer(BOB), path, status) for path, status in (("look", 403), ("reports/7", 200))),
        *(({}, path, 401) for path in ("look", "else")),
    ]
    async with (
        served_over_http(make_reports(auth=auth)) as url,
        patient_client(base_url=f"{url}/plugins/reports") as client,
    ):
        for headers, path, status in cases:
            answer = await client.get(path, headers=headers)
            assert answer.status_code == status, (headers, path)
            if status == 403:
                needed = "reader" if path == "look" else "reports"
                assert f'scope="{needed}"' in answer.headers["www-authenticate"]
        given = {**bearer(ANN), "cookie": "a=b"}
        looked = (await client.get("/look", headers=given)).json()
    assert looked["user"] == "ann"
    assert looked["scopes"] == ["everything", "reader"]
    assert looked["url"] == "/plugins/reports/look"
    assert not {"authorization", "cookie"} & set(looked["headers"])
    assert not {"app", "router", "state", "extensions", "endpoint"} & set(looked["keys"])


async def test_a_plugin_that_is_switched_off_has_no_routes(make_host: MakeHost):
    small = {"profile": "small", "profiles": {"small": {"plugins": ["other"]}}}
    host = make_host({"reports": ReportsPlugin}, server={"port": 0}, **small)
    async with requests_to(host) as client:
        assert (await client.get("/plugins/reports/reports/7")).status_code == 404


async def answer(_: Request) -> Response:
    return Response()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"path": "reports"}, "must begin with '/'"),
        ({"path": "/{id:what}"}, "cannot be read"),
        ({"methods": ("FETCH",)}, "its methods must be"),
        ({"methods": "GET"}, "its methods must be"),
        ({"function": lambda _: Response()}, "must be async"),
        ({"scope": 'a"b'}, "its scope must be a name"),
        ({"timeout": 0}, "positive number of seconds"),
        ({"rate_limit": "often"}, "60/minute"),
        (answer, "register_routes returned"),
        ({"is_page": True, "path": "/a/b"}, "a path of one part"),
        ({"is_page": True, "path": "/{id}"}, "a path of one part"),
        ({"is_page": True, "path": "/health"}, "which the service does not have"),
        ({"is_page": True, "path": ["/a"]}, "must begin with '/'"),
        ({"is_page": True, "methods": ("GET", "POST")}, "the method GET"),
        ({"is_page": True, "tools": "find_book"}, "its tools must be a tuple"),
        ({"is_page": True, "tools": (7,)}, "its tools must be a tuple"),
        ({"tools": ("find_book",)}, "only a page may have tools"),
    ],
    ids=range(17),
)
async def test_a_route_that_is_declared_wrongly_fails_its_plugin(
    make_host: MakeHost, wrong: Any, why: str
):
    class WrongPlugin(Plugin):
        @hookimpl
        def register_routes(self) -> list[Route]:
            if not isinstance(wrong, dict):
                return [wrong]
            return [Route(**{"path": "/a", "function": answer, **wrong})]

    record = make_host({"wrong": WrongPlugin}).manager.records["wrong"]
    assert record.status is Status.FAILED
    assert why in record.reason
