"""Routes of an isolated plugin answer as those of a local one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.hosts import started

from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp.loading.steps.discovery import installed_plugins
from standards_mcp.remote.isolated.plugin import isolate
from standards_mcp.testing.routes import route_client

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
Install = Callable[..., Path]

PLUGIN = '''
    import os
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
    from standards_mcp import NotFoundError, Plugin, Route, hookimpl

    class AcmePlugin(Plugin):
        async def look(self, request):
            """Look."""
            return JSONResponse({
                "number": request.path_params["number"], "query": dict(request.query_params),
                "url": request.url.path, "user": request.user.display_name,
                "scopes": request.auth.scopes, "own": request.headers.get("x-own"),
                "body": (await request.body()).decode(), "method": request.method,
            }, 201, {"x-answer": "é"})

        async def stream(self, request):
            async def parts():
                yield b"one, "
                yield b"two"
            response = StreamingResponse(parts())
            response.set_cookie("a", "b")
            response.set_cookie("c", "d")
            return response

        async def fail(self, request):
            how = request.path_params["how"]
            if how == "missing":
                raise NotFoundError("no such report")
            if how == "teapot":
                raise HTTPException(418, "short")
            if how == "nothing":
                return None
            if how == "large":
                return Response(b"x" * 9_000_000)
            raise RuntimeError("secret detail")

        async def pid(self, request):
            return PlainTextResponse(str(os.getpid()))

        @hookimpl
        def register_routes(self):
            return [
                Route(path="/look/{number:int}", function=self.look, methods=("GET", "POST")),
                Route(path="/stream", function=self.stream, scope="reader"),
                Route(path="/fail/{how}", function=self.fail),
                Route(path="/pid", function=self.pid, rate_limit="1/day"),
            ]
'''


def load(folder: Path, **table: Any) -> Host:
    """Return a host of the plugin alone."""
    settings = Settings(state_dir=folder / "state", plugins={"acme": table})
    loaded = LoadedSettings(settings, None)
    found = [each for each in installed_plugins() if each.name == "acme"]
    found = isolate(found, loaded, folder / "state", DEFAULT_TIMING)
    host = Host(loaded, installed=found)
    host.load()
    return host


async def answers(host: Host) -> list[object]:
    async with started(host), route_client(host, "acme", ["acme", "reader"]) as client:
        requests = [
            ("GET", "/look/7?a=b&c=%20d"),
            ("POST", "/look/8"),
            ("GET", "/look/x"),
            ("GET", "/stream"),
            *(("GET", f"/fail/{how}") for how in ("missing", "teapot")),
        ]
        found: list[object] = []
        for method, path in requests:
            sent = {"x-own": "1", "authorization": "Bearer secret"}
            answer = await client.request(method, path, headers=sent, content=b"body")
            told = {key: text for key, text in answer.headers.items() if key != "content-length"}
            found.append((answer.status_code, told, answer.text))
        return found


async def test_it_answers_as_a_local_plugin_does(install: Install, tmp_path: Path):
    install("acme", PLUGIN)
    here = await answers(load(tmp_path))
    there = await answers(load(tmp_path, isolate=True))
    assert there == here
    assert [each[0] for each in here] == [201, 201, 404, 200, 404, 418]  # type: ignore[index]


async def test_its_failures_and_limits_are_told(install: Install, tmp_path: Path):
    install("acme", PLUGIN)
    host = load(tmp_path, isolate=True)
    async with started(host), route_client(host, "acme") as client:
        for how in ("crash", "nothing"):
            answer = await client.get(f"/fail/{how}")
            assert (answer.status_code, answer.json()["error_type"]) == (500, "internal_error")
            assert "secret" not in answer.text
        large = await client.get("/fail/large")
        assert "at most 8 MiB" in large.json()["message"]
        assert (await client.get("/pid")).text.isdigit()
        assert (await client.get("/pid")).status_code == 429
        (health,) = (await check_health(host.manager)).values()
        assert health.status == "ok"
