"""People in Chromium, who sign in at Canaille, a provider of others."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from pytest_iam import Server, iam_configuration, iam_server, iam_server_port  # noqa: F401
from support.browser import needs_chromium, open_browser, serious_findings
from support.http import free_port, served_over_http

from standards_mcp import Plugin, tool
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.reload import ReloadOptions
from standards_mcp_service.tokens import new_token, token_hash

pytestmark = [pytest.mark.processes, pytest.mark.slow, pytest.mark.anyio, needs_chromium]
ROOT = new_token()
PASSWORD = "correct horse battery"  # noqa: S105
TEXT = """
[server]
admin = true
rest = true
port = {port}

[server.audit]
path = "audit.jsonl"

[server.auth.scopes]
teacher = ["look"]

[server.auth.tokens.root]
sha256 = "{root}"

[server.auth.oidc]
issuer = "{issuer}"
client_id = "{client_id}"
client_secret = "{client_secret}"
public_url = "http://localhost:{port}"
scopes = ["profile", "groups"]
groups = {{ operators = ["admin", "teacher"], teachers = ["teacher"] }}
"""


class DeskPlugin(Plugin):
    @tool(read_only=True)
    async def look(self) -> str:
        """Look."""
        return "here"


def registered(provider: Server, public: str) -> dict[str, str]:
    """Return the client that the service is at a provider."""
    body = {
        "client_name": "standards",
        "redirect_uris": [f"{public}/signed-in"],
        "post_logout_redirect_uris": [f"{public}/signed-out"],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_basic",
        "scope": "openid profile groups",
    }
    client = httpx2.post(f"{provider.url}oauth/register", json=body).json()
    return {name: client[name] for name in ("client_id", "client_secret")}


@asynccontextmanager
async def opened(provider: Server, **options: Any) -> AsyncGenerator[tuple[str, Any]]:
    """Serve a host whose people sign in at a provider, and open a browser."""
    port = free_port()
    public = f"http://localhost:{port}"
    client = await anyio.to_thread.run_sync(registered, provider, public)
    issuer = provider.url.removesuffix("/")
    file = Path("standards-mcp.toml")
    file.write_text(
        TEXT.format(port=port, root=token_hash(ROOT), issuer=issuer, **client), encoding="utf-8"
    )
    host = Host(Sources().load(), installed=[PluginInfo(name="desk", load=lambda: DeskPlugin)])
    host.load()
    async with (
        served_over_http(host, ReloadOptions(sources=Sources())),
        open_browser() as browser,
    ):
        yield public, partial(browser.new_context, **options)


def member(provider: Server, *groups: str) -> Any:
    """Return a user of a provider who belongs to these groups."""
    user = provider.random_user(password=PASSWORD)
    for name in groups:
        provider.random_group(display_name=name, members=[user])
    return user


async def sign_in(page: Any, user: Any) -> None:
    """Sign in at the provider, as a person does."""
    await page.locator("input[name=login]").fill(user.user_name)
    await page.keyboard.press("Enter")
    await page.locator("input[type=password]").fill(PASSWORD)
    await page.keyboard.press("Enter")
    consent = page.locator("button[value=accept]")
    back = page.locator("header.top, #page")
    # The provider remembers the consent of users, and may make up the same user again.
    await consent.or_(back).first.wait_for()
    if await consent.count():
        await consent.click()
        await back.first.wait_for()


async def test_an_operator_signs_in_switches_a_tool_and_signs_out_without_javascript(
    iam_server: Server,  # noqa: F811
):
    user = member(iam_server, "operators")
    async with opened(iam_server, java_script_enabled=False) as (url, new_context):
        context = await new_context()
        page = await context.new_page()
        await page.goto(f"{url}/admin/tools?changed=look")
        await sign_in(page, user)
        assert page.url == f"{url}/admin/tools?changed=look"
        (cookie,) = [each for each in await context.cookies() if "standards" in each["name"]]
        assert cookie["name"] == "__Host-standards-mcp"
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Lax")
        assert (cookie["domain"], cookie["path"]) == ("localhost", "/")
        await page.get_by_role("button", name="Disable look").click()
        await page.get_by_role("status").wait_for()
        assert "look is not served" in await page.get_by_role("status").inner_text()
        (change,) = [
            json.loads(line)
            for line in Path("audit.jsonl").read_text("utf-8").splitlines()
            if "configuration changed" in line
        ]
        assert change["caller"] == f"{iam_server.url.removesuffix('/')}:{user.user_name}"
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("heading", name="Signed out").wait_for()
        assert page.url == f"{url}/signed-out"
        await page.get_by_role("link", name="too").click()
        # The provider keeps the session in a cookie and renews it with each file of its page, so a
        # file that comes after the end of the session would begin it again.
        await page.locator("button[value=logout]").wait_for()
        await page.wait_for_load_state("networkidle")
        await page.locator("button[value=logout]").click()
        await page.get_by_role("heading", name="Signed out").wait_for()
        assert page.url == f"{url}/signed-out"
        await page.goto(f"{url}/admin")
        await page.locator("input[name=login]").wait_for()
        # Whoever has copied the cookie cannot use it any more.
        await context.add_cookies([cookie])
        await page.goto(f"{url}/admin")
        assert await page.locator("input[name=login]").is_visible()


async def test_a_teacher_calls_a_tool_on_the_page_of_the_rest_api(
    iam_server: Server,  # noqa: F811
):
    async with opened(iam_server) as (url, new_context):
        page = await (await new_context()).new_page()
        await page.goto(f"{url}/docs")
        await sign_in(page, member(iam_server, "teachers"))
        options = "{method: 'POST', body: '{}', headers: {'content-type': 'application/json'}}"
        call = f"fetch('/tools/look', {options}).then(answer => answer.status)"
        assert await page.evaluate(call) == 200
        await page.goto(f"{url}/admin")
        assert "You need the scope 'admin'" in await page.inner_text("main")


async def test_a_token_is_still_a_password_for_all_pages(iam_server: Server):  # noqa: F811
    async with opened(iam_server) as (url, new_context):
        context = await new_context(http_credentials={"username": "any", "password": ROOT})
        page = await context.new_page()
        await page.goto(f"{url}/sign-in?token&next=/admin/tools")
        assert page.url == f"{url}/admin/tools"
        await page.get_by_role("link", name="Overview").click()
        await page.get_by_role("heading", name="Overview").wait_for()


async def test_the_pages_are_accessible(iam_server: Server):  # noqa: F811
    async with opened(iam_server) as (url, new_context):
        for scheme, width in (("light", 1280), ("dark", 320)):
            size = {"width": width, "height": 800}
            context = await new_context(color_scheme=scheme, viewport=size)
            page = await context.new_page()
            await page.goto(f"{url}/signed-in?state=unknown")
            assert await serious_findings(page) == []
            await page.goto(f"{url}/signed-out")
            assert await serious_findings(page) == []
            await page.goto(f"{url}/connect")
            await sign_in(page, member(iam_server, "teachers"))
            for summary in await page.locator("summary").all():
                await summary.click()
            assert await serious_findings(page) == []
            is_scrolled = "document.documentElement.scrollWidth > window.innerWidth"
            assert not await page.evaluate(is_scrolled), width
            await page.goto(f"{url}/admin")
            assert await serious_findings(page) == []
            await context.close()
