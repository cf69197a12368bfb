"""The page on which people find the entry for their client."""

from __future__ import annotations

from html import unescape

import pytest
from support.http import auth_of, bearer, patient_client
from support.openid import SECRET, Provider, Serve

from standards_mcp_service.tokens import new_token, token_hash

pytestmark = pytest.mark.anyio
ROOT = new_token()
CLIENTS = ("Claude Desktop", "Claude Code", "Cursor", "VS Code", "Windsurf", "Zed", "Codex")
CLIENTS += ("Gemini CLI", "Cline", "Goose", "Cherry Studio")


async def test_a_person_sees_the_entries_of_all_clients_and_no_secret(
    served: Serve, provider: Provider
):
    provider.claims["name"] = "<b>Ann"
    async with served({"state_key": "k" * 32}, auth_of({"teacher": []}, root=ROOT)) as browser:
        await browser.sign_in()
        answer = await browser.get("/connect")
        page = unescape(answer.text)
        for client in CLIENTS:
            assert f"<summary>{client}</summary>" in page
        assert f"standards-mcp install zed --url {browser.url}/mcp --token-env" in page
        assert '"Authorization": "Bearer ${env:STANDARDS_MCP_TOKEN}"' in page
        assert "~/.cursor/mcp.json" in page
        assert "&lt;b&gt;Ann" in answer.text
        for secret in (SECRET, ROOT, token_hash(ROOT), "k" * 32, *browser.cookies.values()):
            assert secret not in page
        assert "<script" not in page
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        style = await browser.get("/sign-in/style.css")
        assert style.headers["content-type"].startswith("text/css")


async def test_where_clients_can_sign_in_the_entries_have_no_token(served: Serve):
    keys = {"issuer": "https://login.example.org", "audience": "https://mcp.example.org/mcp"}
    async with served(auth={"jwt": keys}) as browser:
        await browser.sign_in()
        page = unescape((await browser.get("/connect")).text)
    assert "STANDARDS_MCP_TOKEN" not in page
    assert f"standards-mcp install cursor --url {browser.url}/mcp --login" in page
    assert "Add custom connector" in page


async def test_the_page_is_for_holders_of_tokens_too_and_hidden_from_others(served: Serve):
    async with (
        served(auth=auth_of({"teacher": []}, root=ROOT)) as browser,
        patient_client(base_url=browser.url) as http,
    ):
        assert (await http.get("/connect")).status_code == 401
        page = await http.get("/connect", headers=bearer(ROOT))
        start = await http.get("/", headers=bearer(ROOT) | {"accept": "text/html"})
    assert page.status_code == 200
    assert "Sign out" not in page.text
    assert '<a href="connect">/connect</a>' in start.text


async def test_the_address_of_the_page_is_the_public_one(served: Serve):
    public = "https://mcp.example.org/standards/"
    async with served(auth=auth_of({"teacher": []}, root=ROOT), public_url=public) as browser:
        page = unescape((await browser.get("/connect", **bearer(ROOT))).text)
        asked = await browser.get("/admin")
        begun = await browser.get("/sign-in")
    assert "https://mcp.example.org/standards/mcp" in page
    assert browser.url not in page
    assert asked.headers["location"].startswith("https://mcp.example.org/standards/sign-in?")
    assert "redirect_uri=https%3A%2F%2Fmcp.example.org%2Fstandards%2Fsigned-in" in str(
        begun.headers["location"]
    )
