"""Pages in Chromium, and the faults that axe finds in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Frame, Page, async_playwright

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u202egnp.evil\u202c",
    "x" * 100_000,
    "=HYPERLINK(1)",
    "javascript:alert(1)",
]
"""Texts that a page must show as they are: markup, script, control characters, a long word."""

needs_chromium = pytest.mark.skipif(_CHROMIUM is None, reason="there is no Chromium")


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """Start a browser without windows."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=_CHROMIUM, args=list(_OPTIONS), env={**os.environ}
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def open_page(**options: Any) -> AsyncGenerator[Page]:
    """Open an empty page, whose scripts may report no error until its end.

    Args:
        options: Options of a browser context, such as ``viewport``.
    """
    faults = list[str]()
    async with open_browser() as browser:
        page = await (await browser.new_context(**options)).new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console", lambda message: faults.append(message.text) if message.type == "error" else 0
        )
        yield page
    assert faults == []


async def serious_findings(page: Page | Frame) -> list[tuple[str, Any]]:
    """Return the rules of axe that a page breaks badly, each with the elements that do."""
    violations = (await Axe().run(page)).response["violations"]
    return [
        (item["id"], [node["target"] for node in item["nodes"]])
        for item in violations
        if item["impact"] in ("serious", "critical")
    ]
