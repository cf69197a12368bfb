"""The pages for imports, approvals and logs in Chromium: accessible, narrow, without JavaScript."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from support.browser import HOSTILE, needs_chromium, open_browser, serious_findings
from support.hosts import entry_of, plain_tool, served
from support.http import http_client
from support.shelf import SETTINGS, shelved, until_page, upload
from support.waiting import until

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.anyio, needs_chromium]
PATHS = ("shelf", "approvals", "log", "log?log=audit&level=error")


def with_server(*tools: dict[str, Any]) -> str:
    """Return settings with a server that lists these tools."""
    table = entry_of("plain_server.py")(Path("peer"))
    Path("peer/tools.json").write_text(json.dumps(tools))
    command = f"command = {json.dumps(table['command'])}\nargs = {json.dumps(table['args'])}"
    return f"{SETTINGS}\n[servers.peer]\n{command}\n"


async def test_the_pages_are_accessible_in_light_and_dark_and_on_a_narrow_screen(
    monkeypatch: pytest.MonkeyPatch,
):
    change = plain_tool("change", readOnlyHint=True)
    settings = with_server(plain_tool("echo"), change)
    complaints = list[str]()
    async with shelved(monkeypatch, settings) as (host, url), open_browser() as browser:
        await until_page(url, "Shelves")
        async with http_client(url) as client:
            await until(lambda: "peer_echo" in served(host))
            for text in HOSTILE:
                logging.getLogger("standards_mcp").warning(text, extra={"plugin": text[:100]})
                await client.call_tool("look", {"where": text})
            changed = [
                plain_tool("echo", " ".join(HOSTILE[:3])),
                change,
                plain_tool("x" * 60, HOSTILE[3]),
            ]
            await client.call_tool("peer_change", {"value": changed})
            await until(lambda: "peer_echo" not in served(host))
        await upload(url, "all", file_name="x" * 100, note=HOSTILE[0])
        await until_page(url, "Last import of")
        for scheme, width in (("light", 1280), ("dark", 320)):
            size = {"width": width, "height": 800}
            context = await browser.new_context(color_scheme=scheme, viewport=size)
            page = await context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            for path in PATHS:
                await page.goto(f"{url}/admin/{path}")
                for summary in await page.locator("summary").all():
                    await summary.click()
                assert await serious_findings(page) == [], (path, scheme)
                is_scrolled = "document.documentElement.scrollWidth > window.innerWidth"
                assert not await page.evaluate(is_scrolled), (path, width)
            await context.close()
        context = await browser.new_context(viewport={"width": 320, "height": 800})
        page = await context.new_page()
        await upload(url, "wait")
        await page.goto(f"{url}/admin/shelf")
        await page.get_by_role("button", name="Cancel the import").wait_for()
        assert await serious_findings(page) == []
        Path("go").touch()
    assert complaints == []


async def test_a_file_is_imported_and_a_definition_approved_without_javascript(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    file = tmp_path / "novels.csv"
    file.write_text("wait", encoding="utf-8")
    change = plain_tool("change", readOnlyHint=True)
    settings = with_server(plain_tool("echo"), change)
    async with shelved(monkeypatch, settings) as (host, url), open_browser() as browser:
        page = await (await browser.new_context(java_script_enabled=False)).new_page()
        await page.goto(f"{url}/admin")
        await page.get_by_role("link", name="The <shelf>").click()
        await page.get_by_role("button", name="Import").click()
        assert "Choose a file" in await page.get_by_role("alert").inner_text()
        await page.get_by_label("File").set_input_files(file)
        await page.get_by_label("A <note>").fill("good")
        await page.get_by_role("button", name="Import").click()
        assert page.url == f"{url}/admin/shelf?refresh="
        await page.get_by_text("Reading: 1 of 4").wait_for()
        Path("go").touch()
        # The page refreshes itself.
        await page.get_by_text("Took good of novels.csv.").wait_for()
        assert await page.get_by_text("line 599").count() == 0

        await until(lambda: "peer_echo" in served(host))
        async with http_client(url) as client:
            await client.call_tool("peer_change", {"value": [plain_tool("echo", "New."), change]})
        await until(lambda: "peer_echo" not in served(host))
        await page.get_by_role("link", name="Approvals").click()
        await page.get_by_role("button", name="Approve tool 'echo' changed").click()
        assert "A definition of peer is approved." in await page.get_by_role("status").inner_text()
        assert "peer_echo" in served(host)

        await page.get_by_role("link", name="Log").click()
        await page.get_by_label("Log", exact=True).select_option("audit")
        await page.get_by_label("Text").fill("definition")
        await page.get_by_role("button", name="Show").click()
        assert await page.locator(".lines li").count() == 1
