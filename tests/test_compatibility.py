"""Plugins that were written for another release of the host."""

from __future__ import annotations

import warnings

import anyio
import pluggy
import pytest

from standards_mcp import Plugin, PluginDeprecationWarning, Tool, hookimpl, hookspecs
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.hookspecs import PROJECT
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, Status

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


def test_a_plugin_that_uses_a_deprecated_part_works_and_warns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hookspecs, "old_hook", old_hook, raising=False)
    installed = [PluginInfo(name="old", load=lambda: OldPlugin)]
    host = Host(LoadedSettings(Settings(), None), installed=installed)
    with pytest.warns(PluginDeprecationWarning) as warned:
        host.load()
    assert [str(warning.message) for warning in warned] == [INSTEAD, "an old field; use a new one"]
    assert host.manager.records["old"].status is Status.REGISTERED
    assert anyio.run(host.call_tool, "old", {}).text == "works"
