"""``standards-mcp config``: schema, init and show."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.command_line import ACME, FILE, WITH_TOKEN, backups, data, done, run
from support.web_server import WebServer, in_thread

from standards_mcp.config.models import Table
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import ArgumentOverride, Profile, ToolOverride, ToolSettings
from standards_mcp.config.schema import config_keys
from standards_mcp_catalog.settings import CatalogSettings

Install = Callable[..., Path]


# config schema


@pytest.fixture
def schema(acme: None) -> Draft202012Validator:
    del acme
    document = json.loads(done("config", "schema"))
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'autoload = false\ntrusted = ["acme-*"]\n[tools]\nrate_limit = "60/minute"\ntimeout = 1',
        '[tools.overrides."a.b"]\ncache_ttl = 0\narguments.q.fixed = [1, 2]',
        '[profiles.teacher]\nread_only = true\nplugins = ["search"]',
        "[plugins.acme]\nenabled = true\nweights = {x = 1.5}\nprofile.depth = 2",
        "[plugins.acme.by_name.one]\ndepth = 3",
        "[plugins.another]\nanything = 1",
    ],
)
def test_the_schema_accepts_valid_files(schema: Draft202012Validator, text: str):
    assert [error.message for error in schema.iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "[tools]\ntimeout = 0",
        '[tools]\nrate_limit = "often"',
        "[tools.overrides.x]\nnme = 1",
        "[plugins.search]\nmax_result = 5",
        '[plugins.acme]\nprofile = {depth = "deep"}',
        "[plugins.acme.by_name.one]\ndepth = 'x'",
    ],
)
def test_the_schema_refuses_mistakes(schema: Draft202012Validator, text: str):
    assert list(schema.iter_errors(tomllib.loads(text)))


def test_settings_without_a_schema_do_not_spoil_the_others(install: Install):
    source = """
        from collections.abc import Callable
        from pydantic import ConfigDict
        from standards_mcp import Plugin, PluginSettings
        from typing_extensions import TypeAliasType

        class Odd: ...

        class OddSettings(PluginSettings):
            model_config = ConfigDict(arbitrary_types_allowed=True)
            odd: Odd | None = None
            call: Callable[[], int] = print
            nested: TypeAliasType("Nested", "list[Nested] | dict[str, Nested] | str") = ""
            size: int = 3

        class OddPlugin(Plugin):
            settings_type = OddSettings
    """
    install("odd", source)
    plugins = json.loads(done("config", "schema"))["properties"]["plugins"]["properties"]
    assert "size" in plugins["odd"]["properties"]
    assert "# size = 3" in done("config", "init", "x.toml") + Path("x.toml").read_text()
    assert "size = 3" in done("config", "show")
    assert "size = 3" in done("plugins", "info", "odd")


# config init


def test_init_writes_the_file_that_was_named_for_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "school.toml"
    assert done("--config", str(file), "config", "init") == f"Wrote {file}\n"
    assert "# [plugins.search]" in file.read_text("utf-8")
    refused = run("--config", str(file), "config", "init", "other.toml")
    assert refused.exit_code == 2
    assert f"--config names {file}, and FILE is other.toml; give one" in refused.stderr
    monkeypatch.setenv("STANDARDS_MCP_CONFIG", str(tmp_path / "named.toml"))
    assert done("config", "init") == f"Wrote {tmp_path / 'named.toml'}\n"
    assert not Path("other.toml").exists()
    assert not Path("standards-mcp.toml").exists()


@pytest.mark.usefixtures("acme")
def test_a_new_file_changes_nothing():
    before = data("config", "show")
    file = Path("sub") / "new.toml"
    assert done("config", "init", str(file)) == f"Wrote {file}\n"
    FILE.unlink()
    Path(".env").write_text("STANDARDS_MCP_PLUGINS__ACME__TOKEN=opensesame")
    after = data("--config", str(file), "config", "show")
    assert [(each["key"], each["value"]) for each in before] == [
        (each["key"], each["value"]) for each in after
    ]


def test_every_key_of_a_new_file_can_be_uncommented(acme: None):
    del acme
    removed = "Settings removed by the new file: [plugins.acme] token. The server may now"
    assert removed in done("config", "init", "--force")
    text = FILE.read_text()
    assert backups() == [WITH_TOKEN]
    lines = [
        line.removeprefix("# ").replace("<", "").replace(">", "").replace(" = ...", ' = "x"')
        for line in text.splitlines()
        if not line.startswith("# ") or line.startswith("# [") or " = " in line
    ]
    statements = [
        line for line in lines if line.startswith("[") or line.partition(" =")[0].isidentifier()
    ]
    values = tomllib.loads("\n".join(statements))
    assert values["tools"]["timeout"] == 30
    assert values["tools"]["overrides"]["name"]["arguments"]["argument"] == dict.fromkeys(
        ["description", "default", "fixed"], "x"
    )
    assert values["plugins"]["acme"]["weights"] == {"a b": 0.5}
    assert values["plugins"]["acme"]["by_name"] == {"name": {"depth": 1}}
    assert "api_key" not in values["plugins"]["catalog"]["pinecone"]
    assert "# Opens the door.\n# token = ...\n" in text


def test_every_key_is_explained():
    keys = list(config_keys({}))
    assert {key.table for key in keys} >= {
        "",
        "server.audit",
        'tools.overrides."<name>"',
    }
    assert [(key.table, key.name) for key in keys if not key.description] == []
    for plugin in ("search", "lookup"):
        shown = data("plugins", "info", plugin)["keys"]
        assert [key["name"] for key in shown][:2] == ["enabled", "required"]
        assert [key["name"] for key in shown if not key["description"]] == []


def test_every_setting_appears_in_a_new_file():
    done("config", "init")
    text = FILE.read_text()
    for model in (Settings, ToolSettings, ToolOverride, ArgumentOverride, Profile, CatalogSettings):
        for name, field in model.model_fields.items():
            if name == "csp":  # it holds a secret alone, which does not belong in a file
                continue
            is_table = isinstance(field.default, Table) or field.default_factory is not None
            is_table = is_table and name != "services"  # its keys are plain texts
            pattern = rf"^(# )?\[.*\b{name}\b" if is_table else f"^# {name} = "
            assert re.search(pattern, text, re.MULTILINE), name


@pytest.mark.parametrize(
    "text", ["# mine\n", "= broken", "[plugins.search]\nrequired = true\nx = 1"]
)
def test_a_file_is_replaced_only_by_force_and_whatever_its_mistakes(text: str):
    FILE.write_text(text)
    result = run("config", "init")
    assert result.exit_code == 1
    assert "already exists; use --force to replace it" in result.stderr
    assert FILE.read_text() == text
    assert "Wrote" in done("config", "init", "--force")
    assert backups() == [text]
    FILE.write_text(FILE.read_text().replace("# read_only = false", "read_only = true", 1))
    assert tomllib.loads(FILE.read_text())["tools"] == {"read_only": True}
    assert done("config", "check")


# config show


def test_the_values_in_force_are_toml_and_tell_their_origin(acme: None, monkeypatch: Any):
    del acme
    monkeypatch.setenv("STANDARDS_MCP_TOOLS__TIMEOUT", "12")
    FILE.write_text(WITH_TOKEN + '[tools.overrides."acme.find"]\ntitle = "Say \\"hi\\" \\u007f"\n')
    shown = done("--set", "strict=true", "config", "show", "--origin")
    values = tomllib.loads(shown)
    assert values["strict"] is True
    assert values["tools"]["timeout"] == 12
    assert values["tools"]["overrides"]["acme.find"] == {"title": 'Say "hi" \x7f'}
    assert values["plugins"]["acme"]["weights"] == {"a b": 0.5}
    origins = {line.partition(" =")[0]: line.rpartition("# ")[2] for line in shown.splitlines()}
    assert origins["strict"] == "command line"
    assert origins["timeout"] == "environment"
    assert origins["title"] == "standards-mcp.toml:4"
    assert origins["autoload"] == "default"
    listed = {each["key"]: each for each in data("config", "show")}
    assert listed['tools.overrides."acme.find".title']["origin"] == "standards-mcp.toml:4"


@pytest.mark.parametrize("broken", [False, True])
def test_secrets_are_never_shown(install: Install, *, broken: bool):
    install("acme", "raise RuntimeError('opensesame')" if broken else ACME)
    storage = '[tools]\nstorage = "redis://me:hushhush@localhost:1/0"\n'
    FILE.write_text(WITH_TOKEN + storage)
    for arguments in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "check"],
        ["tools", "disable", "x", "--dry-run"],
        ["plugins", "info", "acme"],
    ):
        result = run(*arguments)
        assert result.output
        assert "hushhush" not in result.output, arguments
        if not broken:  # which are secret, only a plugin that loads can tell
            assert "opensesame" not in result.output, arguments
    assert "opensesame" not in run("config", "show").stdout
    values = tomllib.loads(run("config", "show").stdout)
    assert set(values["plugins"]["acme"]["token"]) == {"*"}


@pytest.mark.slow
def test_a_secret_in_the_query_of_an_address_is_shown_nowhere():
    with in_thread(WebServer()) as server:
        server.status = 401
        address = f"{server.url}?page=2&api_key=hush%2Chush"
        FILE.write_text(f'[servers.web]\nurl = "{address}"\nenabled = true\n')
        commands = (
            "config show",
            "config show --json",
            "-vv config check",
            "plugins disable web --dry-run",
            "plugins info web --json",
            "-vv plugins check",
            "-vv tools",
        )
        output = "".join(run(*command.split()).output for command in commands)
        assert not re.search(r"hush(%2C|,)hush", output)
        assert f'url = "{server.url}?page=2&api_key=***"' in output
    assert "server 'web' did not start" in output
    result = run("--set", f"servers.web.url={address}", "install", "claude-code", "--print")
    assert result.exit_code == 2
    assert "do not put a secret there" in result.output
    assert "hush%2C" not in result.output
