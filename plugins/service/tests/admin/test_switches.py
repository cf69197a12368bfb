"""The switches of plugins on the admin page, as a browser requests it."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.hosts import names_of
from support.http import http_client, patient_client, served_over_http

from standards_mcp import Plugin, Prompt, Resource, Service, hookimpl, tool
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.reload import ReloadOptions

pytestmark = pytest.mark.anyio
TEXT = '[server]\nadmin = true\nport = 0\n\n[server.audit]\npath = "audit.jsonl"\n'
OFF = "[plugins.desk]\nenabled = false\n"


class DeskPlugin(Plugin):
    """A plugin with a tool, a prompt and a resource."""

    @tool(read_only=True)
    async def look(self) -> str:
        """Look."""
        return "here"

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="greet", description="Greet", function=lambda: "Hi")]

    @hookimpl
    def register_resources(self):
        return [Resource(uri="desk://map", name="map", description="Map", function=lambda: "map")]


class GuestPlugin(Plugin):
    """A plugin whose prompt needs a tool of the other one."""

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="visit", description="Visit", function=visit, needs=["look"])]


def visit(tools: object) -> str:
    return f"Visit {tools}"


class Shelf:
    """A service of the shelf plugin."""


class ShelfPlugin(Plugin):
    @hookimpl
    def register_services(self):
        return [Service(type=Shelf, factory=Shelf)]


class Cup:
    """A service of the reader plugin."""


class ReaderPlugin(Plugin):
    """A plugin that needs the service of another one."""

    needs = (Shelf,)

    @hookimpl
    def register_services(self):
        return [Service(type=Cup, factory=Cup)]


class GuestOfReaderPlugin(Plugin):
    needs = (Cup,)


class BrokenShelfPlugin(ShelfPlugin):
    @hookimpl
    def register_tools(self):
        return [3]


class BrokenPlugin(Plugin):
    def __init__(self, *args: Any) -> None:
        raise RuntimeError(f"broken{len(args)}")


@asynccontextmanager
async def administered(
    text: str = TEXT, **plugins: type[Plugin]
) -> AsyncGenerator[tuple[Host, str]]:
    file = Path("service.toml")
    file.write_text(text, encoding="utf-8")
    plugins |= {"desk": DeskPlugin, "guest": GuestPlugin, "broken": BrokenPlugin}
    installed = [
        PluginInfo(name=name, distribution=f"{name}-kit", load=lambda item=item: item)
        for name, item in plugins.items()
    ]
    sources = Sources(file)
    host = Host(sources.load(), installed=installed)
    host.load()
    async with served_over_http(host, ReloadOptions(sources=sources)) as url:
        yield host, url


async def send(url: str, form: Mapping[str, Any]) -> httpx2.Response:
    async with patient_client(headers={"origin": url}) as http:
        return await http.post(f"{url}/admin/tools", data=form)


async def press(url: str, action: str, plugin: str = "desk") -> httpx2.Response:
    return await send(url, {"action": action, "plugin": plugin})


async def confirm(url: str, page: httpx2.Response) -> httpx2.Response:
    assert "Nothing is changed yet" in page.text
    fields = re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', page.text)
    return await send(url, {unescape(name): unescape(text) for name, text in fields})


async def read(url: str, query: str = "") -> str:
    async with patient_client() as http:
        return unescape((await http.get(f"{url}/admin/tools{query}")).text)


def file_text() -> str:
    return Path("service.toml").read_text("utf-8")


async def test_a_plugin_that_is_loaded_is_switched_at_once_and_gives_the_file_back():
    async with administered() as (_, url), http_client(url, mode="legacy") as client:
        assert await names_of(client) == ["look"]
        pressed = await press(url, "disable")
        assert (pressed.status_code, pressed.headers["location"]) == (
            303,
            "tools?changed_plugin=desk",
        )
        assert await names_of(client) == []
        page = await read(url, "?changed_plugin=desk")
        assert "desk is disabled, and nothing of it is served" in page
        assert 'aria-label="Enable the plugin desk"' in page
        asked = await press(url, "enable")
        served = "look, the prompt greet, the prompt visit, the resource map"
        assert f"This serves at once: {served}." in asked.text
        assert await names_of(client) == []
        assert (await confirm(url, asked)).status_code == 303
        assert await names_of(client) == ["look"]
        assert "desk is enabled." in await read(url, "?changed_plugin=desk")
    assert file_text() == TEXT
    lines = map(json.loads, Path("audit.jsonl").read_text("utf-8").splitlines())
    changes = [line for line in lines if line["event"] == "configuration changed"]
    assert [(line["action"], line["plugin"]) for line in changes] == [
        ("plugins disable", "desk"),
        ("plugins enable", "desk"),
    ]


async def test_a_plugin_that_was_not_loaded_waits_for_a_restart():
    async with administered(TEXT + OFF) as (host, url):
        asked = await press(url, "enable")
        assert "all contributions of the plugin" in asked.text
        assert "From its next start on" in asked.text
        assert file_text() == TEXT + OFF
        assert (await confirm(url, asked)).status_code == 303
        assert host.manager.records["desk"].settings_type is None
        page = await read(url, "?changed_plugin=desk")
        assert "desk is enabled. Its code runs from the next start of the service on" in page
        assert "[plugins.desk] enabled = false" not in page
        assert (await press(url, "disable")).status_code == 303
        assert "desk is disabled" in await read(url, "?changed_plugin=desk")
    assert Sources(Path("service.toml")).load().settings.plugins["desk"].enabled is False


NEEDED = {"shelf": ShelfPlugin, "reader": ReaderPlugin, "visitor": GuestOfReaderPlugin}


async def test_plugins_that_need_a_disabled_one_are_named_first():
    async with administered(**NEEDED) as (_, url):
        asked = await press(url, "disable", "shelf")
        assert "also disables the plugins that need it: reader, visitor." in asked.text
        assert file_text() == TEXT
        assert (await press(url, "disable", "visitor")).status_code == 303
        asked = await press(url, "disable", "shelf")
        assert "the plugins that need it: reader." in asked.text
        assert (await confirm(url, asked)).status_code == 303
    settings = Sources(Path("service.toml")).load().settings
    disabled = {name for name, section in settings.plugins.items() if section.enabled is False}
    assert disabled == {"shelf", "visitor"}


async def test_a_plugin_that_a_required_one_needs_keeps_the_service_from_its_next_start():
    text = f"{TEXT}\n[plugins.reader]\nrequired = true\n"
    async with administered(text, **NEEDED) as (_, url):
        asked = await press(url, "disable", "shelf")
        assert "will not start again: reader cannot do without it." in asked.text


async def test_a_provider_that_failed_can_be_disabled():
    plugins = {"shelf": BrokenShelfPlugin, "reader": ReaderPlugin}
    async with administered(**plugins) as (_, url):
        assert (await press(url, "disable", "desk")).status_code == 303
        assert (await press(url, "disable", "shelf")).status_code == 303


async def test_without_autoload_a_plugin_gets_its_own_line():
    async with administered(f"autoload = false\n{TEXT}") as (_, url):
        assert (await confirm(url, await press(url, "enable"))).status_code == 303
        assert 'aria-label="Disable the plugin desk"' in await read(url)
    assert "[plugins.desk]\nenabled = true\n" in file_text()


async def test_a_plugin_that_other_keys_disable_has_no_switch_and_no_effect():
    async with administered(f'trusted = ["guest-kit"]\n{TEXT}') as (_, url):
        page = await read(url)
        assert "trusted has no pattern for 'desk-kit'" in page
        assert 'aria-label="Enable the plugin desk"' not in page
        assert 'aria-label="Disable the plugin guest"' in page
        refused = await press(url, "enable")
        assert refused.status_code == 409
        assert "desk would still not be loaded: trusted has no pattern" in refused.text


async def test_a_variable_that_overrides_the_file_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__DESK__ENABLED", "true")
    async with administered() as (_, url):
        refused = await press(url, "disable")
        assert refused.status_code == 409
        assert "a variable or --set overrides the file" in refused.text
    assert file_text() == TEXT


async def test_a_plugin_that_has_failed_can_be_disabled():
    async with administered() as (_, url):
        assert (await press(url, "disable", "broken")).status_code == 303
    assert "[plugins.broken]\nenabled = false\n" in file_text()


async def test_a_server_is_switched_in_its_own_table():
    server = f"[servers.far]\nenabled = false\ncommand = {json.dumps(sys.executable)}\n"
    async with administered(TEXT + server) as (_, url):
        asked = await press(url, "enable", "far")
        assert "all contributions of the server" in asked.text
        assert (await confirm(url, asked)).status_code == 303
        assert "far is enabled. Its code runs from the next start" in await read(
            url, "?changed_plugin=far"
        )
    assert file_text() == TEXT + server.replace("enabled = false\n", "")


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", b"\xed\xb2\x80", "x" * 10_000, "a\x00\x1b", "zoe"]
)
async def test_a_plugin_that_does_not_exist_is_refused(name: str | bytes):
    async with administered() as (_, url), patient_client() as http:
        for action in ("enable", "disable"):
            refused = await send(url, {"action": action, "plugin": name})
            assert refused.status_code == 409
            assert "There is no plugin" in refused.text
            assert "<script" not in refused.text
            assert not set("\x00\x1b") & set(refused.text)
        page = await http.get(f"{url}/admin/tools", params={"plugin": name})
        assert "<script" not in page.text
    assert file_text() == TEXT
