"""The variables that an isolated plugin gets: what programs need, and those that it declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.hosts import Install, MakeHost, configured, started

from standards_mcp.host import Host
from standards_mcp.loading.records import Status

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

PLUGIN = '''
    import os, sys
    from typing import Annotated
    from pydantic import SecretStr
    from standards_mcp import Plugin, PluginSettings, Variable, tool

    def read_first_line():
        """Find what the process was told in the frames of its functions."""
        frame, found = sys._getframe(), []
        while frame:
            found += [each.model_dump_json() for name, each in frame.f_locals.items()
                      if name == "config" and hasattr(each, "model_dump_json")]
            frame = frame.f_back
        return " ".join(found)

    TOLD = read_first_line()
    with open(os.environ["HOME"] + "/starts", "a") as file:
        file.write("x")

    class AcmeSettings(PluginSettings):
        key: Annotated[SecretStr | None, Variable("ACME_KEY")] = None
        color: Annotated[str, Variable("acme_color")] = "grey"
        stolen: Annotated[str, Variable("STANDARDS_MCP_SERVER__STATE_KEY")] = ""

    class AcmePlugin(Plugin[AcmeSettings]):
        settings_type = AcmeSettings

        @tool(read_only=True)
        def look(self) -> dict:
            """Look around."""
            own = self.settings
            return {
                "key": own.key and own.key.get_secret_value()[::-1], "color": own.color,
                "stolen": own.stolen, "told": TOLD, "variables": sorted(os.environ),
                "token": os.environ.get("ACME_TOKEN", "")[::-1],
            }
'''
KEY, TOKEN = "declared-key-4242", "passed-token-4242"


@pytest.fixture
def isolated(install: Install, monkeypatch: pytest.MonkeyPatch) -> MakeHost:
    """Install the plugin among secrets of others; return a function that loads it isolated."""
    install("acme", PLUGIN)
    install("other", PLUGIN.replace("Acme", "Other"))
    monkeypatch.setenv("STANDARDS_MCP_SERVER__STATE_KEY", "x" * 40 + "-state-key")
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__OTHER__KEY", "hunter-others")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter-aws")
    monkeypatch.setenv("LANGSMITH_API_KEY", "hunter-lang")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("ACME_KEY", KEY)
    Path(".env").write_text("ACME_COLOR=blue\nSEARCH_API_KEY=hunter-search\n", encoding="utf-8")

    def load(name: str = "acme", **keys: Any) -> Host:
        table = {"enabled": True, "isolate": True, **keys}
        return configured(autoload=False, plugins={name: table})

    return load


async def look(host: Host) -> Any:
    result = await host.call_tool("look", {})
    assert not result.is_error, result.text
    return result.structured


async def test_a_plugin_gets_what_programs_need_and_the_variables_that_it_declares(
    isolated: MakeHost,
):
    async with started(isolated()) as host:
        seen = await look(host)
    assert (seen["key"], seen["color"]) == (KEY[::-1], "blue")
    assert seen["stolen"] == "", "variables of the host are not for plugins"
    variables = set(seen["variables"])
    assert {"PATH", "HOME", "HTTPS_PROXY", "LC_ALL", "PYTHONPATH", "ACME_KEY"} <= variables
    assert not {"AWS_SECRET_ACCESS_KEY", "LANGSMITH_API_KEY", "SEARCH_API_KEY"} & variables
    assert not [name for name in variables if name.startswith("STANDARDS_MCP_SERVER")]
    assert not [name for name in variables if name.startswith("STANDARDS_MCP_PLUGINS")]
    assert '"name":"acme"' in seen["told"]
    assert "hunter" not in seen["told"]
    assert "state-key" not in seen["told"]


async def test_a_process_is_started_twice_only_while_its_variables_are_not_known(
    isolated: MakeHost,
):
    for _ in range(2):
        async with started(isolated()) as host:
            await host.manager.records["acme"].plugin.wait_started()
            assert (await look(host))["key"] == KEY[::-1]
    assert Path.home().joinpath("starts").read_text() == "xxx"


async def test_an_admin_passes_more_variables(isolated: MakeHost, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOKEN_OF_ACME", TOKEN)
    env = {"ACME_TOKEN": "${TOKEN_OF_ACME}", "AWS_PROFILE": "${AWS_PROFILE:-none}"}
    async with started(isolated(env=env)) as host:
        seen = await look(host)
        assert seen["token"] == TOKEN[::-1]
        assert "AWS_PROFILE" in seen["variables"]
        assert {TOKEN, KEY} <= host.secrets()
    assert TOKEN not in repr(host.settings)


async def test_a_variable_that_is_not_set_is_named_with_its_key(isolated: MakeHost):
    host = isolated(env={"ACME_TOKEN": "${TOKEN_OF_ACME}"})
    record = host.manager.records["acme"]
    assert record.status is Status.FAILED
    assert "[plugins.acme.env] ACME_TOKEN:" in record.reason
    assert "${TOKEN_OF_ACME} is not set; set TOKEN_OF_ACME in the environment" in record.reason
