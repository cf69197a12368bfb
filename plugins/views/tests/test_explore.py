"""`views explore`: the page in a browser, and a server that answers nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from playwright.async_api import Page, expect
from support.browser import needs_chromium, open_page, serious_findings
from support.waiting import WAIT

from standards_mcp import ToolResult
from standards_mcp.host import Host
from standards_mcp_views import explore
from standards_mcp_views.explore import Server

expect.set_options(timeout=WAIT * 1000)


@pytest.fixture
def server(host: Host) -> Iterator[Server]:
    """A server whose calls run in a thread of their own, as in the main thread of the command."""
    server = Server()

    def answer() -> None:
        with asyncio.Runner() as runner:
            running = host.running()
            runner.run(running.__aenter__())

            def call(name: str, arguments: Any) -> ToolResult:
                return runner.run(host.call_tool(name, arguments))

            server.answer_calls(call)
            runner.run(running.__aexit__(None, None, None))

    threads = [Thread(target=answer), Thread(target=server.serve_forever)]
    for thread in threads:
        thread.start()
    yield server
    server.shutdown()
    server.server_close()
    server.calls.put(None)
    for thread in threads:
        thread.join()


def post(server: Server, tool: str, body: Any) -> httpx2.Response:
    return httpx2.post(f"{server.url}tools/{tool}", content=json.dumps(body), timeout=60)


def test_the_page_calls_the_tools_that_read(server: Server):
    answer = post(server, "find_relevant_standards", {"activity": "comparing fractions"})
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert answer.json()["results"]
    failed = post(server, "find_relevant_standards", {"grade": "99"})
    assert (failed.status_code, failed.json()["success"]) == (422, False)
    assert "grade" in failed.json()["message"]


@pytest.mark.parametrize(
    ("tool", "body"),
    [("web_search", {}), ("", {}), ("browse_standards", []), ("browse_standards", "x")],
)
def test_the_page_calls_no_other_tool(server: Server, tool: str, body: Any):
    assert post(server, tool, body).status_code == 400


def test_only_the_address_with_the_token_is_answered(server: Server):
    base, token = server.url.rstrip("/").rsplit("/", 1)
    for path in (
        "/",
        "/tools/browse_standards",
        f"/{token}x/",
        f"/{token[:-1]}/",
        f"/{token}/../",
        "/\u00fc/",
    ):
        assert httpx2.get(f"{base}{path}").status_code == 404
    assert httpx2.get(server.url, headers={"host": "evil.example"}).status_code == 404
    assert httpx2.get(server.url, headers={"origin": "https://evil.example"}).status_code == 404
    assert httpx2.put(server.url).status_code == 501
    good = httpx2.get(server.url)
    assert good.status_code == 200
    assert "frame-ancestors 'none'" in good.headers["content-security-policy"]
    assert good.headers["cache-control"] == "no-store"


def test_a_body_that_is_too_long_is_not_read(server: Server):
    assert post(server, "browse_standards", {"parent": "x" * 200_000}).status_code == 400


def test_a_call_that_is_too_late_does_not_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explore, "_CALL_SECONDS", 0.05)
    server = Server()
    serving = Thread(target=server.serve_forever)
    serving.start()
    late = post(server, "browse_standards", {})
    server.shutdown()
    server.server_close()
    serving.join()
    calls: list[str] = []
    server.calls.put(None)
    server.answer_calls(lambda name, _: calls.append(name) or ToolResult(text=""))
    assert (late.status_code, late.json()["message"]) == (502, "The call took too long.")
    assert calls == []


def test_it_waits_for_calls_in_short_steps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explore, "_WAIT_SECONDS", 0.01)
    server = Server()
    answering = Thread(target=server.answer_calls, args=(lambda _name, _: ToolResult(text="yes"),))
    answering.start()
    answering.join(0.1)
    assert answering.is_alive()
    answer: Future[ToolResult] = Future()
    server.calls.put(("browse_standards", {}, answer))
    assert answer.result(WAIT).text == "yes"
    server.calls.put(None)
    answering.join(WAIT)
    server.server_close()


@pytest.mark.parametrize(
    ("error", "is_reported"), [(BrokenPipeError(), False), (ValueError("odd"), True)]
)
def test_a_closed_tab_prints_nothing(
    error: Exception, is_reported: bool, capsys: pytest.CaptureFixture[str]
):
    server = Server()
    try:
        raise error
    except (BrokenPipeError, ValueError):
        server.handle_error(None, ("127.0.0.1", 1))
    server.server_close()
    assert ("Traceback" in capsys.readouterr().err) == is_reported


@asynccontextmanager
async def opened(server: Server, fragment: str = "", **options: Any) -> AsyncGenerator[Page]:
    async with open_page(**options) as page:
        await page.goto(server.url + fragment)
        yield page


in_browser = [
    pytest.mark.anyio,
    pytest.mark.slow,
    needs_chromium,
]


class TestInABrowser:
    """The page as a teacher uses it."""

    pytestmark = in_browser

    async def test_it_searches_while_one_types_and_narrows_by_grade(self, server: Server):
        async with opened(server) as page:
            await expect(page.get_by_text("Common Core State Standards")).to_be_visible()
            await page.get_by_role("searchbox", name="Describe").fill("compare fractions")
            await expect(page.locator(".card").first).to_be_visible()
            await page.get_by_label("Grade").select_option("4")
            await expect(page.locator(".card .code").first).to_have_text("4.NF.A.2")

    async def test_a_slow_answer_replaces_no_newer_page(self, server: Server):
        async with opened(server, "#compare%20fractions") as page:
            await page.evaluate(
                """() => {
                  const now = window.fetch;
                  const isSlow = (url) => url.includes("/get_");
                  window.held = [];
                  window.fetch = async (url, options) => {
                    if (isSlow(url)) await new Promise((go) => window.held.push(go));
                    return now(url, options);
                  };
                }"""
            )
            release = (
                "held.splice(0).forEach((go) => go()); new Promise((go) => setTimeout(go, 500))"
            )
            await page.get_by_role("button", name="Details of").first.click()
            await page.get_by_role("button", name="Collected (0)").click()
            await page.evaluate(release)
            await expect(page.get_by_text("Nothing is collected.")).to_be_visible()
            await page.get_by_role("searchbox", name="Describe").fill("telling time")
            await page.get_by_role("button", name="Details of").first.click()
            await page.evaluate(release)
            await expect(page.get_by_role("heading", level=1)).to_be_focused()
            await page.get_by_role("button", name="Grades before and after").click()
            await page.get_by_role("button", name="← Back").click()
            await page.evaluate(release)
            await expect(page.locator("main")).to_be_focused()
            await expect(page.get_by_role("status")).to_have_text("")

    async def test_it_begins_with_the_query_of_the_address(self, server: Server):
        async with opened(server, "#compare%20fractions") as page:
            await expect(page.locator(".card").first).to_be_visible()
            assert await page.get_by_role("searchbox", name="Describe").input_value() == (
                "compare fractions"
            )

    async def test_collected_standards_are_saved_and_removed(self, server: Server, tmp_path: Path):
        async with opened(server, "#compare%20fractions") as page:
            await page.get_by_role("checkbox").first.check()
            await page.get_by_role("checkbox").nth(1).check()
            await page.get_by_role("button", name="Collect", exact=True).click()
            await page.reload()
            await page.get_by_role("button", name="Collected (2)").click()
            for name in ("CSV", "Markdown", "JSON"):
                async with page.expect_download() as download:
                    await page.get_by_role("button", name=name).click()
                file = tmp_path / (await download.value).suggested_filename
                await (await download.value).save_as(file)
                assert "NF" in file.read_text(encoding="utf-8")
            await page.get_by_role("button", name="Remove").first.click()
            await expect(page.get_by_role("button", name="Collected (1)")).to_be_visible()

    @pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1200, "light")])
    async def test_it_is_accessible(self, server: Server, width: int, scheme: str):
        viewport = {"width": width, "height": 800}
        async with opened(
            server, "#compare%20fractions", viewport=viewport, color_scheme=scheme
        ) as page:
            await expect(page.locator(".card").first).to_be_visible()
            assert await serious_findings(page) == []
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
