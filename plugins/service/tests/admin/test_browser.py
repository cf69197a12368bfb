"""The admin page in a browser: for screen readers, by the keyboard alone, narrow and wide."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.browser import needs_chromium, open_browser, serious_findings
from support.hosts import names_of
from support.http import bearer, http_client, patient_client, served_over_http

from standards_mcp import Health, Plugin, hookimpl, tool
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.reload import ReloadOptions
from standards_mcp_service.tokens import new_token, token_hash

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    needs_chromium,
]
ROOT = new_token()
TEXT = f"""
[tools]
disable = ["gone"]

[server]
admin = true
port = 0

[server.auth.tokens.root]
sha256 = "{token_hash(ROOT)}"
"""


class DeskPlugin(Plugin):
    """A plugin that has something of everything."""

    @tool(read_only=True)
    async def look(self, where: str = "here") -> str:
        """Look."""
        return f"{1 / len(where)}"

    @tool(name="gone", title="Gone")
    async def tool_with_a_long_name(self) -> str:
        """Go."""
        return "gone"

    @hookimpl
    async def check_health(self):
        return Health(status="degraded", message="dusty")


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[tuple[str, Any]]:
    """Serve a host with some history, and open a browser for its page."""
    file = Path("standards-mcp.toml")
    file.write_text(TEXT, encoding="utf-8")
    plugin = PluginInfo(name="desk", version="1.0", load=lambda: DeskPlugin)
    host = Host(Sources().load(), installed=[plugin])
    host.load()
    async with (
        served_over_http(host, ReloadOptions(sources=Sources())) as url,
        open_browser() as browser,
        http_client(url, ROOT, mode="legacy") as client,
    ):
        for where in ("here", "there", ""):
            await client.call_tool("look", {"where": where})
        password = {"username": "any", "password": ROOT}
        yield url, partial(browser.new_context, http_credentials=password, **options)


async def test_the_pages_are_accessible_in_light_and_dark_and_on_a_narrow_screen():
    async with opened(java_script_enabled=True) as (url, new_context):
        complaints = list[str]()
        for scheme, width in (("light", 1280), ("dark", 320)):
            size = {"width": width, "height": 800}
            context = await new_context(color_scheme=scheme, viewport=size)
            page = await context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            for path in ("", "/tools?changed=gone", "/tokens"):
                await page.goto(f"{url}/admin{path}")
                for summary in await page.locator("summary").all():
                    await summary.click()
                assert await serious_findings(page) == [], (path, scheme)
                is_scrolled = "document.documentElement.scrollWidth > window.innerWidth"
                assert not await page.evaluate(is_scrolled), (path, width)
            ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(245, 246, 248)") == (scheme == "light")
            await context.close()
        # The browser has followed the policy of the pages, and had nothing to keep from them.
        assert complaints == []


async def test_a_switch_works_by_the_keyboard_alone_and_without_javascript():
    async with opened(java_script_enabled=False) as (url, new_context):
        page = await (await new_context()).new_page()
        await page.goto(f"{url}/admin/tools")
        await page.keyboard.press("Tab")
        assert await page.locator(":focus").inner_text() == "Skip to the content"
        await page.keyboard.press("Enter")
        for name in ("Disable the plugin desk", "Disable look", "Enable gone"):
            await page.keyboard.press("Tab")
            assert await page.locator(":focus").get_attribute("aria-label") == name
        await page.keyboard.press("Enter")
        await page.get_by_role("status").wait_for()
        assert await page.get_by_role("status").inner_text() == "gone is served."
        assert await page.get_by_role("button", name="Disable gone").is_visible()
        async with http_client(url, ROOT) as client:
            tools = await names_of(client)
    assert tools == ["look", "gone"]


async def test_a_token_is_made_limited_and_revoked_without_javascript():
    async with opened(java_script_enabled=False) as (url, new_context):
        page = await (await new_context()).new_page()
        await page.goto(f"{url}/admin")
        await page.get_by_role("link", name="Tokens").click()
        await page.get_by_label("Name, such as that of its holder").fill("eve")
        await page.locator("input[value=metrics]").check()
        await page.get_by_role("button", name="Make the token").click()
        secret = await page.locator("pre.secret").inner_text()
        async with patient_client(headers=bearer(secret)) as http:
            assert (await http.get(f"{url}/health")).status_code == 200
            await page.get_by_role("link", name="All tokens").click()
            await page.get_by_text("Change when eve expires").click()
            expires = page.locator("#expires-2")
            await expires.fill("2031-12-31T23:59:58")
            await page.get_by_role("button", name="Set when eve expires").click()
            assert "eve expires at 2031-12-31T23:59:58Z" in await page.inner_text(".notice")
            await page.get_by_text("Change when eve expires").click()
            assert await expires.input_value() == "2031-12-31T23:59:58"
            await page.get_by_role("button", name="Revoke eve").click()
            assert "Nothing is changed yet" in await page.inner_text("main")
            await page.get_by_role("link", name="Cancel").click()
            assert page.url == f"{url}/admin/tokens"
            await page.get_by_role("button", name="Revoke eve").click()
            await page.get_by_role("button", name="Confirm").click()
            assert "no token of this name any more" in await page.inner_text(".notice")
            assert (await http.get(f"{url}/health")).status_code == 401


async def test_the_pages_of_a_change_are_accessible_in_light_and_dark_and_on_a_narrow_screen():
    async with opened() as (url, new_context):
        for scheme, width in (("light", 1280), ("dark", 320)):
            size = {"width": width, "height": 800}
            page = await (await new_context(color_scheme=scheme, viewport=size)).new_page()

            async def check(name: str, page: Any = page) -> None:
                assert name in await page.inner_text("main")
                assert await serious_findings(page) == [], name
                is_scrolled = "document.documentElement.scrollWidth > window.innerWidth"
                assert not await page.evaluate(is_scrolled), name

            await page.goto(f"{url}/admin/tokens")
            await page.get_by_label("Name, such as").fill("e" * 64)
            await page.get_by_role("button", name="Make the token").click()
            await check("Choose at least one scope")
            await page.locator("input[value=metrics]").check()
            await page.get_by_role("button", name="Make the token").click()
            await check("it is shown only here")
            await page.get_by_role("link", name="All tokens").click()
            for summary in await page.locator("summary").all():
                await summary.click()
            await check("does not expire.")
            await page.get_by_role("button", name="Revoke root").click()
            await check("nobody can open this page")
            await page.goto(f"{url}/admin/tools")
            await page.get_by_role("button", name="Disable the plugin desk").click()
            await check("desk is disabled")
            await page.get_by_role("button", name="Enable the plugin desk").click()
            await check("This serves at once: look")
            await page.get_by_role("button", name="Confirm").click()
            await check("desk is enabled.")
            await page.goto(f"{url}/admin/tokens")
            await page.get_by_role("button", name="Revoke eee").click()
            await page.get_by_role("button", name="Confirm").click()
            await check("no token of this name any more")
