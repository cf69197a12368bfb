"""The patterns of docs/plugins/gallery.md, run as they stand there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp import Client
from mcp_types import ElicitResult
from playwright.async_api import expect
from support.browser import needs_chromium, open_page
from support.hosts import MakeHost
from support.http import served_over_http
from support.web_server import QuietHandler, in_thread

from standards_mcp import Plugin
from standards_mcp.server.server import build_server
from standards_mcp.testing import Allowed, Call, ConnectHttp, check_plugin
from standards_mcp_catalog import Catalog, open_local

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parent.parent / "docs" / "plugins" / "gallery.md"
SOURCES: dict[str, str] = dict(
    re.findall(r"^```python (\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
)
TOKEN = "opensesame-7"  # noqa: S105


def plugin(name: str) -> type[Plugin[Any]]:
    """Return the class of a pattern."""
    module = ModuleType(name)
    exec(compile(SOURCES[name], f"{name}.py", "exec", dont_inherit=True), vars(module))  # noqa: S102
    found = getattr(module, f"{name.capitalize()}Plugin")
    assert issubclass(found, Plugin)
    return found


def importable(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> type[Plugin[Any]]:
    """Return the class of a pattern, from a module that other processes can import."""
    (folder / f"gallery_{name}.py").write_text(SOURCES[name], encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    found = getattr(importlib.import_module(f"gallery_{name}"), f"{name.capitalize()}Plugin")
    assert issubclass(found, Plugin)
    return found


class WeatherService(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802
        place = parse_qs(urlsplit(self.path).query)["place"][0]
        right = self.headers["Authorization"] == f"Bearer {TOKEN}"
        status = {"Nowhere": 404, "Storm": 503, "Moved": 302}.get(place, 200) if right else 401
        answers = {"Fog": "<html>", "Dusk": '{"temperature": 3}'}
        self.reply(status, answers.get(place, '{"degrees": 21.5}').encode())


@pytest.fixture
def service() -> Iterator[str]:
    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), WeatherService)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/"


def test_there_are_eight():
    assert list(SOURCES) == [
        "weather",
        "drafts",
        "alike",
        "notes",
        "terms",
        "reports",
        "counts",
        "cleanup",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("weather", [("weather", {"place": "Oslo"})]),
        ("drafts", [("draft_lessons", {"topic": "Clocks"})]),
        ("alike", [("rank_texts", {"text": "A", "others": ["B"]})]),
        ("notes", [("add_note", {"code": "1", "note": "A"}), ("list_notes", {"code": "1"})]),
        ("terms", [("common_terms", {"topic": "fractions"})]),
        ("cleanup", []),
    ],
)
def test_every_pattern_keeps_the_rules_of_the_test_kit(
    name: str,
    calls: list[Call],
    service: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    catalog: Catalog,
):
    pattern = importable(name, tmp_path, monkeypatch)
    settings = {"url": service, "token": TOKEN} if name == "weather" else {}
    # A client of httpx reads all certificates first, which a busy machine takes its time for.
    allow = Allowed(destructive=("delete_drafts",), blocked_seconds=1)
    check_plugin(
        pattern, name=name, calls=calls, allow=allow, services={Catalog: catalog}, **settings
    )


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("Oslo", '{"place":"Oslo","degrees":21.5}'),
        ("Nowhere", "does not know 'Nowhere'. Try a larger town."),
        ("Storm", "The weather service answered 503."),
        ("Moved", "The weather service answered 302."),
        ("Fog", "The weather service answered nonsense."),
        ("Dusk", "The weather service answered nonsense."),
    ],
)
async def test_a_service_with_a_key(make_host: MakeHost, service: str, place: str, expected: str):
    table = {"weather": {"url": service, "token": TOKEN}}
    host = make_host({"weather": plugin("weather")}, plugins=table)
    async with host.running():
        result = await host.call_tool("weather", {"place": place})
    assert expected in result.text
    assert TOKEN not in result.text


async def test_a_service_that_refuses_the_key_or_is_gone(make_host: MakeHost, service: str):
    for url, expected in ((service, "refuses the token"), ("http://127.0.0.1:1/", "be reached")):
        table = {"weather": {"url": url, "token": "wrong"}}
        host = make_host({"weather": plugin("weather")}, plugins=table)
        async with host.running():
            result = await host.call_tool("weather", {"place": "Oslo"})
        assert result.is_error
        assert expected in result.text


async def test_a_long_job_with_progress(make_host: MakeHost):
    heard: list[float] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        assert (total, message) == (4, f"Clocks, part {done:.0f}")
        heard.append(done)

    host = make_host({"drafts": plugin("drafts")})
    async with Client(build_server(host, "1")) as client:
        arguments = {"topic": "Clocks", "lessons": 4}
        result = await client.call_tool("draft_lessons", arguments, progress_callback=hear)
    assert len(result.structured_content["result"]) == 4
    assert heard == [1, 2, 3, 4]


@pytest.mark.slow
async def test_heavy_work_in_a_worker_process(
    make_host: MakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    host = make_host({"alike": importable("alike", tmp_path, monkeypatch)})
    arguments = {"text": "Kittens nap.", "others": ["Taxes", "A cat sleeps."]}
    async with host.running():
        result = await host.call_tool("rank_texts", arguments)
    assert result.text == "1. A cat sleeps.\n2. Taxes"


async def test_a_database_that_outlives_the_server(make_host: MakeHost):
    for note in ("Use strips.", "Use pizza."):
        host = make_host({"notes": plugin("notes")})
        async with host.running():
            await host.call_tool("add_note", {"code": "3.NF.A.1", "note": note})
            kept = await host.call_tool("list_notes", {"code": "3.NF.A.1"})
    assert kept.structured == {"result": ["Use strips.", "Use pizza."]}


async def test_an_expensive_call_that_is_kept(make_host: MakeHost, planted: Path):
    terms = plugin("terms")
    host = make_host({"terms": terms}, given={Catalog: open_local(planted)})
    first, second = [await host.call_tool("common_terms", {"topic": "fractions"}) for _ in "ab"]
    assert first == second
    assert "fraction" in first.text
    assert vars(terms)["runs"] == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (ElicitResult(action="accept", content={"delete": True}), "All drafts are deleted."),
        (ElicitResult(action="accept", content={"delete": False}), "Nothing was deleted."),
        (ElicitResult(action="decline"), "Nothing was deleted."),
    ],
)
async def test_a_question_to_the_user(make_host: MakeHost, reply: ElicitResult, expected: str):
    async def answer(context: Any, params: Any) -> ElicitResult:
        del context, params
        return reply

    server = build_server(make_host({"cleanup": plugin("cleanup")}), "1")
    async with Client(server, elicitation_callback=answer) as client:
        assert (await client.call_tool("delete_drafts", {})).content[0].text == expected


@pytest.mark.usefixtures("planted")  # skips it without the libraries of the catalog
async def test_a_route_answers_with_a_standard(connect_http: ConnectHttp, catalog: Catalog):
    services = {Catalog: catalog}
    reports = plugin("reports")
    async with connect_http(
        reports, name="reports", scopes=["reports"], services=services
    ) as client:
        found = await client.get("/standards/3.NF.A.1")
        assert found.json() == {"text": "Cut a pizza into equal parts", "for": "tester"}
        assert (await client.get("/standards/none")).status_code == 404


@pytest.mark.slow
@needs_chromium
async def test_a_page_calls_its_tool(make_host: MakeHost):
    host = make_host({"counts": plugin("counts")}, server={"port": 0})
    async with served_over_http(host) as url, open_page() as page:
        await page.goto(f"{url}/counts")
        await page.get_by_label("Text").fill("three words here")
        await expect(page.get_by_role("status")).to_have_text("3")


@pytest.mark.usefixtures("planted")  # skips it without the libraries of the catalog
def test_the_plugin_with_a_route_keeps_the_rules(catalog: Catalog):
    check_plugin(
        plugin("reports"),
        name="reports",
        services={Catalog: catalog},
        requests=[("GET", "/standards/3.NF.A.1")],
    )
