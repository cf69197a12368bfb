from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.hosts import MakeHost

from standards_mcp import Plugin, PluginError, Tool, hookimpl
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.errors import UnknownToolError
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, Status

pytestmark = pytest.mark.anyio


class Acme(Plugin[Any]):
    @hookimpl
    def register_tools(self) -> list[Tool]:
        return [
            Tool(name="acme.add", function=self.add, read_only=True),
            Tool(name="find", function=self.find),
        ]

    def add(self, a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    async def find(self, text: str) -> str:
        """Find something."""
        return text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme_sub", "Unknown tool: acme_sub; did you mean 'acme_add'?"),
        ("zzzzz", "Unknown tool: zzzzz"),
        ("", "Unknown tool: "),
        ("Find", "Unknown tool: Find; did you mean 'find'?"),
        ("find\n", "Unknown tool: find\n; did you mean 'find'?"),
    ],
)
async def test_an_unknown_tool_is_named_with_the_nearest(
    make_host: MakeHost, name: str, message: str
):
    with pytest.raises(UnknownToolError) as caught:
        await make_host({"acme": Acme}).call_tool(name, {})
    assert str(caught.value) == message


async def test_a_tool_that_is_not_served_is_not_suggested(make_host: MakeHost):
    host = make_host({"acme": Acme}, tools={"disable": ["acme.*"]})
    with pytest.raises(UnknownToolError) as caught:
        await host.call_tool("acme_ad", {})
    assert "did you mean" not in str(caught.value)


async def test_the_tools_of_a_failed_plugin_are_unknown(make_host: MakeHost):
    host = make_host({"acme": Acme})
    host.manager.fail(host.manager.records["acme"], "it broke")
    assert host.visible().visible_tools == []
    with pytest.raises(UnknownToolError):
        await host.call_tool("find", {})


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path):
    plugin = PluginInfo(name="acme", load=pytest.fail)
    host = Host(LoadedSettings(Settings(state_dir=tmp_path / "state"), None), installed=[plugin])
    host.restore()
    assert host.manager.records["acme"].status is Status.DISCOVERED
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("distribution", "noted"), [("standards-mcp", False), ("acme", True)])
def test_a_start_is_noted_where_others_than_the_hosts_own_plugins_are_tried(
    tmp_path: Path, distribution: str, noted: bool
):
    tried: list[bool] = []

    def load() -> type[Plugin]:
        attempts = (tmp_path / "state").glob("plugins-*.attempt")
        tried.append(any("acme" in file.read_text() for file in attempts))
        return Acme

    record = PluginInfo(name="acme", load=load, distribution=distribution)
    Host(LoadedSettings(Settings(state_dir=tmp_path / "state"), None), installed=[record]).load()
    assert tried == [noted]
    left = (tmp_path / "state").glob("plugins-*.attempt")
    assert not any(file.read_text().strip() for file in left)


@pytest.mark.parametrize("strict", [False, True])
def test_how_plugins_fared_is_remembered_even_when_that_is_fatal(tmp_path: Path, strict: bool):
    def fresh() -> Host:
        loaded = LoadedSettings(Settings(state_dir=tmp_path / "state", strict=strict), None)
        records = [
            PluginInfo(name="acme", load=lambda: Acme),
            PluginInfo(name="broken", load=lambda: 5),
        ]
        return Host(loaded, installed=records)

    try:
        fresh().load()
    except PluginError:
        assert strict
    host = fresh()
    host.restore()
    found = {name: record.status for name, record in host.manager.records.items()}
    assert found == {"acme": Status.REGISTERED, "broken": Status.FAILED}


def test_state_is_kept_in_the_users_folder_by_default():
    from platformdirs import user_state_path

    host = Host(LoadedSettings(Settings(), None), installed=[])
    assert host.state_dir == user_state_path("standards-mcp", appauthor=False)
