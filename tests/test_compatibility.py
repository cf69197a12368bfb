"""Plugins that were written for another release of the host."""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pluggy
import pytest
from mcp import Client
from mcp_types import ResourceTemplateReference

from standards_mcp import Plugin, PluginDeprecationWarning, Tool, cli, hookimpl, hookspecs
from standards_mcp.config.loading import LoadedSettings, load_settings
from standards_mcp.config.models.settings import Settings
from standards_mcp.hookspecs import PROJECT
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginInfo, Status
from standards_mcp.server.server import build_server

Install = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("starter_catalog")

FIRST = Path(__file__).parent / "first_release" / "standards_mcp_first.py"
INSTEAD = "old_hook goes away with 1.0; use register_tools"


@pytest.fixture
def first(install: Install) -> Host:
    """Return a host with the plugin of the first release installed as an installer would."""
    install("first", FIRST.read_text("utf-8"), requires=["standards-mcp>=0.1,<1"])
    host = Host(load_settings(overrides={"strict": True}))
    host.load()
    return host


@pytest.mark.anyio
@pytest.mark.parametrize("generation", ["legacy", "auto"])
async def test_a_plugin_of_the_first_release_still_serves_everything(first: Host, generation: str):
    async with Client(build_server(first, "1"), mode=generation) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools >= {"first_greet", "first_find", "first_raw"}
        greeting = await client.call_tool("first.greet", {"name": "Ada", "tone": "cool"})
        assert [block.text for block in greeting.content] == [
            "Hello, Ada (cool)",
            "from the first release",
        ]
        found = await client.call_tool("first_find", {"code": "3.nf.1", "first_state": "X"})
        assert found.structured_content["result"][0]["code"] == "3.nf.1"
        assert (await client.call_tool("first_find", {"code": "x", "first_state": " "})).is_error
        assert (await client.call_tool("first_raw", {"n": 3})).structured_content == {"n": 3}
        refused = await client.call_tool("first_greet", {"name": "nobody"})
        assert "greets somebody only" in refused.content[0].text
        prompt = await client.get_prompt("first_talk", {"tone": "warm"})
        assert [message.content.text for message in prompt.messages] == [
            "Call first_greet.",
            "warm",
        ]
        read = await client.read_resource("first://notes/a?page=2")
        assert read.contents[0].text == "a 2"
        ref = ResourceTemplateReference(type="ref/resource", uri="first://notes/{note}{?page}")
        completed = await client.complete(ref, {"name": "note", "value": "n"})
        assert completed.completion.values == ["n1", "n2"]
        health = (await check_health(first.manager))["first"]
        assert (health.status, health.message) == ("ok", "5 calls")
    assert not first.manager.records["first"].deprecated


def test_its_command_and_its_settings_work(install: Install, capfd: pytest.CaptureFixture[str]):
    install("first", FIRST.read_text("utf-8"))
    assert cli.run(["--set", "plugins.first.greeting=Hi", "first"]) == 0
    assert capfd.readouterr().out == "Hi, all (warm)\n"


@pluggy.HookspecMarker(PROJECT)(warn_on_impl=PluginDeprecationWarning(INSTEAD))
def old_hook() -> None:
    """Go away."""


class OldPlugin(Plugin):
    @hookimpl
    def old_hook(self) -> None:
        pass

    @hookimpl
    def register_tools(self):
        warnings.warn("an old field; use a new one", PluginDeprecationWarning, stacklevel=1)
        return [Tool(name="old", description="Old.", function=lambda: "works")]


def loaded(*plugins: type[Plugin]) -> Host:
    records = [
        PluginInfo(name=f"p{number}", load=lambda found=plugin: found)
        for number, plugin in enumerate(plugins)
    ]
    host = Host(LoadedSettings(Settings(), None), installed=records)
    host.load()
    return host


def test_a_plugin_that_uses_what_goes_away_works_and_is_told_what_to_use(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hookspecs, "old_hook", old_hook, raising=False)

    class NewPlugin(Plugin):
        pass

    host = loaded(OldPlugin, NewPlugin)
    old, new = host.manager.records.values()
    assert old.status is Status.REGISTERED
    assert anyio.run(host.call_tool, "old", {}).text == "works"
    assert old.deprecated == [INSTEAD, "an old field; use a new one"]
    assert new.deprecated == []
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told == [f"plugin 'p0' is out of date: {text}" for text in old.deprecated]


def test_another_warning_of_a_plugin_takes_its_own_way():
    class LoudPlugin(Plugin):
        @hookimpl
        def register_tools(self):
            warnings.warn("something else", UserWarning, stacklevel=1)
            return []

    with pytest.warns(UserWarning, match="something else"):
        loaded(LoudPlugin)


@pytest.mark.slow
def test_what_goes_away_is_shown_by_the_commands(
    install: Install, capfd: pytest.CaptureFixture[str]
):
    source = """
        import warnings
        from standards_mcp import Plugin, PluginDeprecationWarning, hookimpl

        class AcmePlugin(Plugin):
            @hookimpl
            def register_tools(self):
                warnings.warn("use b", PluginDeprecationWarning)
                return []
    """
    install("acme", source)
    assert cli.run(["plugins", "info", "acme", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["deprecated"] == ["use b"]
    cli.run(["doctor", "--json"])
    findings: list[dict[str, Any]] = json.loads(capfd.readouterr().out)
    (finding,) = [each for each in findings if each["message"] == "use b"]
    assert finding["level"] == "warning"
    assert re.search("Update it", finding["fix"])
