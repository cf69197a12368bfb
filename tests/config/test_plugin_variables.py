"""Variables and paths that only a plugin's settings declare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import done, run
from support.hosts import started

from standards_mcp.config.loading import load_settings
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio
Install = Callable[..., Path]

PLUGIN = """
    from pathlib import Path
    from typing import Annotated
    from pydantic import Field, SecretStr
    from standards_mcp import ApiError, Plugin, PluginSettings, Variable, tool

    class FindSettings(PluginSettings):
        key: Annotated[SecretStr, Variable("FIND_API_KEY")]
        site: Annotated[str, Variable("FIND_SITE")] = "example.org"
        data: Path = Path("none")
        extra: Path | None = None
        roots: list[Path] = []
        tags: Annotated[list[str], Variable("FIND_TAGS")] = []
        index: Annotated[SecretStr, Variable("pinecone_api_key")] | None = None
        from_: Annotated[str, Variable("FIND_FROM")] = Field("a", alias="from")

    class FindPlugin(Plugin[FindSettings]):
        settings_type = FindSettings

        @tool(read_only=True)
        def show(self) -> dict:
            '''Show the settings.'''
            own = self.settings
            return {"key": own.key.get_secret_value(), "site": own.site,
                    "data": str(own.data), "extra": str(own.extra),
                    "roots": [str(each) for each in own.roots], "tags": own.tags,
                    "index": own.index and own.index.get_secret_value(), "from": own.from_}

        @tool(read_only=True)
        def fail(self) -> str:
            '''Tell the key.'''
            raise ApiError("refused " + self.settings.key.get_secret_value())
"""


@pytest.fixture
def _find(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("find", PLUGIN)
    monkeypatch.setenv("FIND_API_KEY", "hunter-4242")


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def host(**overrides: Any) -> Host:
    made = Host(load_settings(overrides=overrides))
    made.load()
    return made


async def shown(**overrides: Any) -> dict[str, Any]:
    async with started(host(**overrides)) as running:
        result = await running.call_tool("show", {})
    assert result.structured is not None, result.text
    return result.structured


@pytest.fixture(params=["in process", "isolated"])
def isolate(request: pytest.FixtureRequest) -> str:
    return f"isolate = {str(request.param == 'isolated').lower()}"


@pytest.mark.slow
@pytest.mark.usefixtures("_find")
async def test_a_key_is_set_by_a_variable_of_its_own(isolate: str):
    write(
        ".env",
        "FIND_SITE=from.example\nFIND_API_KEY=hidden-by-the-other\n"
        'find_from=b\nFIND_TAGS=["x", "y"]\nPINECONE_API_KEY={"key": 4343}\n',
    )
    write(
        "standards-mcp.toml",
        '[plugins.catalog]\nbackend = "local"\n'
        f'[plugins.find]\nsite = "file.example"\ndata = " "\n{isolate}\n',
    )
    found = await shown()
    assert (found["key"], found["site"]) == ("hunter-4242", "from.example")
    assert (found["tags"], found["index"], found["from"]) == (["x", "y"], '{"key": 4343}', "b")
    assert found["data"] == "none", "a blank path is left out"
    if "false" in isolate:
        assert (await shown(plugins={"find": {"site": "said.example"}}))["site"] == "said.example"


@pytest.mark.slow
@pytest.mark.usefixtures("_find")
async def test_a_path_starts_in_the_folder_of_its_file(tmp_path: Path, isolate: str):
    file = tmp_path / "school.toml"
    write(
        str(file),
        f'[plugins.find]\ndata = "books"\nextra = "~/more"\nroots = ["a", "/b"]\n{isolate}\n',
    )
    running = Host(load_settings(file))
    running.load()
    async with started(running):
        found = (await running.call_tool("show", {})).structured
    assert found is not None
    assert (found["data"], found["extra"]) == (str(tmp_path / "books"), f"{Path.home()}/more")
    assert found["roots"] == [str(tmp_path / "a"), "/b"]


@pytest.mark.slow
@pytest.mark.usefixtures("_find")
async def test_the_value_of_a_variable_is_masked_as_a_secret(isolate: str):
    write("standards-mcp.toml", f"[plugins.find]\n{isolate}\n")
    async with started(host()) as running:
        assert "refused ***" in (await running.call_tool("fail", {})).text
        assert "hunter-4242" in running.secrets()


@pytest.mark.usefixtures("_find")
@pytest.mark.parametrize("text", ["", '[plugins.find]\nkey = "hunter-4242"\n'])
def test_a_key_that_is_missing_or_in_the_file_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, text: str
):
    monkeypatch.delenv("FIND_API_KEY")
    write("standards-mcp.toml", text)
    assert "set FIND_API_KEY in the environment or in .env" in run("config", "check").stdout


@pytest.mark.usefixtures("_find", "starter_catalog")
def test_commands_name_the_variable_and_hide_its_value():
    found = {each["key"]: each for each in json.loads(done("config", "show", "--json"))}
    key = found["plugins.find.key"]
    assert (key["value"].strip("*"), key["origin"]) == ("", "environment")
    assert found["plugins.find.data"]["origin"] == "default"
    info = " ".join(done("plugins", "info", "find").split())
    assert "Set it by FIND_API_KEY." in info
    assert "Set it by FIND_SITE." in info
    assert "FIND_API_KEY" in run("install", "cursor", "--print").stderr
    given = run("install", "cursor", "--print", "--env", "FIND_API_KEY")
    assert '"FIND_API_KEY": "hunter-4242"' in given.stdout
    assert "FIND_API_KEY" not in given.stderr


@pytest.mark.usefixtures("_find")
async def test_a_home_that_is_not_there_fails_the_plugin_alone():
    write("standards-mcp.toml", '[plugins.find]\ndata = "~nobody-here/x"\n')
    running = host()
    reason = running.manager.records["find"].reason
    assert "standards-mcp.toml:2: [plugins.find] data: ~nobody-here/x" in reason
    assert "write the whole path" in reason
    assert [item.published for item in running.visible().visible_tools]
