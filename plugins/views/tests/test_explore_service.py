"""`/explore` of the service: the page of a person who signed in, and the tools of their token."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Error, Page, expect
from support.browser import needs_chromium, open_browser, open_page
from support.hosts import Install, MakeHost
from support.http import auth_of, bearer, requests_to, served_process
from support.waiting import WAIT

from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.server.reload import apply_settings
from standards_mcp.testing import ConnectHttp, check_plugin
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_search import SearchPlugin
from standards_mcp_service.tokens import new_token, token_hash
from standards_mcp_views import ViewsPlugin

expect.set_options(timeout=WAIT * 1000)
ANN, BOB = new_token(), new_token()
SETTINGS = f"""
[server]
audit = {{ path = "audit.jsonl" }}

[server.auth.scopes]
finder = ["find_*"]

[server.auth.tokens.ann]
sha256 = "{token_hash(ANN)}"

[server.auth.tokens.bob]
sha256 = "{token_hash(BOB)}"
scopes = ["finder"]
"""
IN_BROWSER = [pytest.mark.processes, pytest.mark.anyio, pytest.mark.slow, needs_chromium]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a service, with its configuration and its audit log."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "standards-mcp.toml").write_text(SETTINGS, encoding="utf-8")
    return folder


@pytest.fixture
def url(folder: Path, starter_catalog: Path, install: Install) -> Iterator[str]:
    """The address of a service in a process of its own, with the page."""
    install("views", "from standards_mcp_views import ViewsPlugin")
    install("resources", "from standards_mcp_resources import ResourcesPlugin")
    with served_process(folder, catalog=starter_catalog) as url:
        yield url


def tried_in_vain(folder: Path) -> list[str]:
    """Return the names of the tools that were called without being served."""
    lines = (folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    calls = [json.loads(line) for line in lines]
    return [call["name"] for call in calls if call.get("error_type") == "not_served"]


@asynccontextmanager
async def signed_in(token: str) -> AsyncGenerator[Page]:
    """Open a page of a person whose browser sends a token, and reports no error."""
    async with open_page(http_credentials={"username": "any", "password": token}) as page:
        yield page


class TestInABrowser:
    """The page as people with different tokens see it."""

    pytestmark = IN_BROWSER

    async def test_one_who_may_do_everything_searches_browses_and_reads(
        self, url: str, folder: Path
    ):
        async with signed_in(ANN) as page:
            await page.goto(url)
            await page.get_by_role("link", name="/explore").click()
            await expect(page.get_by_role("list").get_by_text("Common Core State")).to_be_visible()
            await page.get_by_role("searchbox", name="Describe").fill("compare fractions")
            await page.get_by_label("Grade").select_option("4")
            await expect(page.locator(".card .code").first).to_have_text("4.NF.A.2")
            await page.get_by_role("button", name="Details of 4.NF.A.2").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("4.NF.A.2")
            await page.get_by_role("button", name="Grades before and after").click()
            await expect(page.get_by_role("button", name="3.NF.A.3", exact=True)).to_be_visible()
            await page.get_by_role("button", name="Browse").click()
            await expect(page.get_by_role("list").get_by_text("Common Core State")).to_be_visible()
        assert tried_in_vain(folder) == []

    async def test_one_who_may_only_search_sees_only_the_search(self, url: str, folder: Path):
        async with signed_in(BOB) as page:
            await page.goto(f"{url}/explore")
            await expect(page.get_by_text("Describe an activity, or type a code.")).to_be_visible()
            await page.get_by_role("searchbox", name="Describe").fill("compare fractions")
            await expect(page.locator(".card").first).to_be_visible()
            for name in ("Browse", "Details of", "Grades before"):
                assert await page.get_by_role("button", name=name).count() == 0
            await page.get_by_role("checkbox").first.check()
            await page.get_by_role("button", name="Collect", exact=True).click()
            await page.get_by_role("button", name="Collected (1)").click()
            await expect(page.get_by_role("heading", name="Collected")).to_be_visible()
        assert tried_in_vain(folder) == []
        with httpx2.Client(base_url=url, headers=bearer(BOB)) as client:
            refused = client.post("/explore/tools/get_standard_details", json={})
        assert (refused.status_code, refused.json()["error_type"]) == (404, "not_found")

    async def test_one_without_a_token_or_with_a_wrong_one_sees_nothing(self, url: str):
        wrong = {"username": "any", "password": new_token()}
        async with open_browser() as browser:
            for options in ({}, {"http_credentials": wrong}):
                page = await browser.new_page(**options)
                answer = None
                with suppress(Error):  # a browser without windows shows the 401, or gives up
                    answer = await page.goto(f"{url}/explore")
                assert answer is None or answer.status == 401
                assert await page.get_by_role("searchbox").count() == 0


@pytest.mark.anyio
@pytest.mark.slow
@needs_chromium
async def test_a_token_that_is_revoked_while_the_page_is_open_is_told(
    make_host: MakeHost, starter_catalog: Path
):
    plugins = {"catalog": CatalogPlugin, "search": SearchPlugin, "views": ViewsPlugin}
    tables = {"catalog": {"path": str(starter_catalog)}}
    auth = auth_of(ann=ANN, bob=BOB)
    host = make_host(plugins, server={"port": 0, "auth": auth}, plugins=tables)
    async with requests_to(host) as client, open_browser() as browser:
        credentials = {"username": "any", "password": ANN}
        page = await browser.new_page(http_credentials=credentials)
        await page.goto(f"{client.base_url}/explore")
        server = {"port": 0, "auth": auth_of(bob=BOB)}
        settings = Settings(state_dir=host.settings.state_dir, server=server)
        apply_settings(host, LoadedSettings(settings, None))
        await page.get_by_role("searchbox", name="Describe").fill("compare fractions")
        await expect(page.get_by_role("alert")).to_contain_text("the token is not valid here")


@pytest.mark.anyio
@pytest.mark.slow
@needs_chromium
async def test_one_who_may_use_no_tool_is_told_so(make_host: MakeHost):
    host = make_host({"views": ViewsPlugin}, server={"port": 0})
    async with requests_to(host) as client, open_page() as page:
        await page.goto(f"{client.base_url}/explore")
        await expect(page.get_by_text("ask the administrator for access")).to_be_visible()
        assert await page.get_by_role("searchbox").count() == 0


@pytest.mark.anyio
@pytest.mark.parametrize(("plugins", "status"), [({"views": ViewsPlugin}, 200), ({}, 404)])
async def test_the_page_is_there_while_its_plugin_is(
    make_host: MakeHost, plugins: dict[str, Any], status: int
):
    async with requests_to(make_host(plugins, server={"port": 0})) as client:
        answer = await client.get("/explore")
    assert answer.status_code == status
    if status == 200:
        policy = answer.headers["content-security-policy"]
        assert "script-src 'sha256-" in policy
        assert "unsafe" not in policy
        assert 'data-tools=""' in answer.text, "nobody may call tools that are not there"


@pytest.mark.anyio
async def test_the_kit_serves_pages_too(connect_http: ConnectHttp):
    async with connect_http(ViewsPlugin, name="views", scopes=[]) as client:
        answer = await client.get("http://localhost/explore")
        assert answer.status_code == 200
        assert answer.text.startswith("<!doctype html>")
        assert (await client.get("/explore")).status_code == 404


def test_the_plugin_keeps_the_rules():
    check_plugin(ViewsPlugin, name="views", requests=[("GET", "http://localhost/explore")])
