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

from standards_mcp import Plugin, PluginDeprecationWarning, Tool, cli, hookimpl, hookspecs
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.hookspecs import PROJECT
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, Status

Install = Callable[..., Path]

INSTEAD = "old_hook goes away with 1.0; use register_tools"


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
