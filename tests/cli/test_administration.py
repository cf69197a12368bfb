"""The commands that show, check and change the configuration, as people type them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tomlkit
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.waiting import WAIT

from standards_mcp.cli import cli
from standards_mcp.config.edits import (
    with_plugin,
    with_tool_disabled,
    with_tool_enabled,
)
from standards_mcp.config.models import Table
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import ArgumentOverride, Profile, ToolOverride, ToolSettings
from standards_mcp.config.schema import config_keys
from standards_mcp_catalog.settings import CatalogSettings

Install = Callable[..., Path]
FILE = Path("standards-mcp.toml")

ACME = """
    from pydantic import BaseModel, SecretStr
    from standards_mcp import Plugin, PluginSettings, Tool, hookimpl

    class Profile(BaseModel):  # a name that the host has too
        depth: int = 1

    class AcmeSettings(PluginSettings):
        '''Settings.

        Attributes:
            token: Opens the door.
        '''

        token: SecretStr
        weights: dict[str, float] = {"a b": 0.5}
        profile: Profile = Profile()
        by_name: dict[str, Profile] = {}

    class AcmePlugin(Plugin):
        settings_type = AcmeSettings

        @hookimpl
        def register_tools(self):
            def find(text: str) -> str:
                return text

            return [
                Tool(name="acme.find", description="Find.", function=find, read_only=True),
                Tool(name="acme.write", description="Write.", function=find),
            ]
"""
WITH_TOKEN = '[plugins.acme]\ntoken = "opensesame"\n'  # noqa: S105


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), prog_name="standards-mcp")


def done(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def backups(file: Path = FILE) -> list[str]:
    return [path.read_text() for path in sorted(file.parent.glob(f"{file.name}.*.bak"))]


@pytest.fixture
def acme(install: Install) -> None:
    install("acme", ACME)
    FILE.write_text(WITH_TOKEN)


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
def test_the_schema_passes_what_the_host_takes(schema: Draft202012Validator, text: str):
    assert [error.message for error in schema.iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "autoloda = true",
        "[tools]\ntimeout = 0",
        '[tools]\nrate_limit = "often"',
        "[tools.overrides.x]\nnme = 1",
        "[profiles.teacher]\nread_only = 3",
        "[plugins.search]\nmax_result = 5",
        '[plugins.acme]\nprofile = {depth = "deep"}',
        "[plugins.acme.by_name.one]\ndepth = 'x'",
        '[plugins.acme]\nenabled = "yes"',
    ],
)
def test_the_schema_refuses_mistakes(schema: Draft202012Validator, text: str):
    assert list(schema.iter_errors(tomllib.loads(text)))


def test_a_plugin_whose_settings_no_schema_can_tell_spoils_none(install: Install):
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
    assert (
        "size"
        in json.loads(done("config", "schema"))["properties"]["plugins"]["properties"]["odd"][
            "properties"
        ]
    )
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
    before = json.loads(done("config", "show", "--json"))
    file = Path("sub") / "new.toml"
    assert done("config", "init", str(file)) == f"Wrote {file}\n"
    FILE.unlink()
    Path(".env").write_text("STANDARDS_MCP_PLUGINS__ACME__TOKEN=opensesame")
    after = json.loads(done("--config", str(file), "config", "show", "--json"))
    assert [(each["key"], each["value"]) for each in before] == [
        (each["key"], each["value"]) for each in after
    ]


def test_every_key_of_a_new_file_can_be_uncommented(acme: None):
    del acme
    assert "more may be served: [plugins.acme] token" in done("config", "init", "--force")
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
    assert "api_key" not in values["catalog"]["pinecone"]
    assert "# Opens the door.\n# token = ...\n" in text


def test_each_key_of_the_hosts_own_tables_works_where_it_stands():
    done("config", "init")
    text = FILE.read_text()
    FILE.write_text(text.replace("# read_only = false", "read_only = true", 1))
    assert tomllib.loads(FILE.read_text())["tools"] == {"read_only": True}
    assert done("config", "check")


def test_every_key_is_explained():
    keys = list(config_keys({}))
    assert {key.table for key in keys} >= {"", "catalog.pinecone", 'tools.overrides."<name>"'}
    assert [(key.table, key.name) for key in keys if not key.description] == []
    for plugin in ("search", "lookup"):
        shown = json.loads(done("plugins", "info", plugin, "--json"))["keys"]
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
            pattern = rf"^(# )?\[.*\b{name}\b" if is_table else f"^# {name} = "
            assert re.search(pattern, text, re.MULTILINE), name


def test_a_file_that_is_there_is_left_alone():
    FILE.write_text("# mine\n")
    result = run("config", "init")
    assert result.exit_code == 1
    assert "already exists; use --force to replace it" in result.stderr
    assert FILE.read_text() == "# mine\n"


@pytest.mark.parametrize(
    "text", ["nonsense = 1", "= broken", "[plugins.search]\nrequired = true\nx = 1"]
)
def test_a_file_with_mistakes_can_be_replaced(text: str):
    FILE.write_text(text)
    assert "Wrote" in done("config", "init", "--force")
    assert backups() == [text]
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
    listed = {each["key"]: each for each in json.loads(done("config", "show", "--json"))}
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


class _Refusing(BaseHTTPRequestHandler):
    """Refuses every request, and quotes the address that was asked for."""

    def do_POST(self) -> None:
        self.send_response(401, f"no access to {self.path}")
        self.end_headers()

    do_GET = do_POST  # noqa: N815  - as the base class spells it

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def refusing() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_secret_in_the_query_of_an_address_is_shown_nowhere(refusing: str):
    address = f"{refusing}?page=2&api_key=hush%2Chush"
    FILE.write_text(f'[servers.web]\nurl = "{address}"\nenabled = true\n')
    output = ""
    for arguments in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["-vv", "config", "check"],
        ["plugins", "disable", "web", "--dry-run"],
        ["plugins", "info", "web", "--json"],
        ["-vv", "plugins", "check"],
        ["-vv", "tools"],
    ):
        output += run(*arguments).output
    assert not re.search(r"hush(%2C|,)hush", output)
    assert f'url = "{refusing}?page=2&api_key=***"' in output
    assert "server 'web' did not start" in output
    result = run("--set", f"servers.web.url={address}", "install", "claude-code", "--print")
    assert result.exit_code == 2
    assert "do not put a secret there" in result.output
    assert "hush%2C" not in result.output


# config check


def test_a_check_names_every_mistake(install: Install):
    assert done("config", "check") == "ok: no file; every key has its default\n"
    install("acme", ACME)
    FILE.write_text('[tools]\ndisable = ["find_relevent*"]\n')
    result = run("config", "check")
    assert result.exit_code == 1
    assert "plugin acme: [plugins.acme] token: field required" in result.stdout
    assert (
        "standards-mcp.toml:2: [tools] disable: 'find_relevent*' matches no tool" in result.stdout
    )
    FILE.write_text("[tools]\nread_onyl = true\n")
    result = run("config", "check")
    assert result.exit_code == 2
    assert result.stderr == (
        "standards-mcp: standards-mcp.toml:2: [tools] read_onyl: unknown key; did you mean "
        "'read_only'?\n"
    )


def test_a_check_runs_values_of_overrides_through_the_tools_own_validation(install: Install):
    source = """
        from standards_mcp import Filter, InvalidInputError, Plugin, hookimpl

        async def place(name: str):
            if name != "here":
                raise InvalidInputError(f"{name} is nowhere")
            return {"jurisdiction_title": name}

        def size(number: int):
            return {"depth": 1 // number}

        class PlacesPlugin(Plugin):
            @hookimpl
            def register_filters(self):
                return [
                    Filter(name="place", description="P.", annotation=str, to_expression=place),
                    Filter(name="size", description="S.", annotation=int, to_expression=size),
                ]
    """
    install("places", source)
    table = "[tools.overrides.find_relevant_standards.arguments]\n"
    FILE.write_text(f'{table}grade = {{ fixed = "grade thirteen" }}\n')
    result = run("config", "check")
    key = "[tools.overrides.find_relevant_standards.arguments"
    assert result.exit_code == 1
    assert f"standards-mcp.toml:2: {key}.grade] fixed: 'grade thirteen' is not" in result.stdout
    FILE.write_text(f'{table}place = {{ default = "there" }}\nsize = {{ fixed = 0 }}\n')
    result = run("config", "check")
    assert result.exit_code == 1
    assert f"standards-mcp.toml:2: {key}.place] default: place: there is nowhere" in result.stdout
    assert f"standards-mcp.toml:3: {key}.size] fixed: " in result.stdout
    FILE.write_text(f'{table}place = {{ default = "here" }}\ngrade = {{ fixed = "3-5" }}\n')
    assert "ok: " in done("config", "check")


@pytest.mark.parametrize(
    "text",
    [
        '[tools]\ndisable = ["find_relevent*", "find_relevent*"]',
        '[prompts]\ndisable = ["nothing"]',
        'profile = "a"\n[profiles.a]\nplugins = ["nothing"]',
        '[resources.overrides.nothing]\nname = "a"',
        '[plugins.acme]\nsize = "big"',
        "[plugins.acme]\nchoice = [1]",
        '[plugins.acme]\nlists = ["x"]',
        '[servers.a]\ncommand = "python"\nargs = [3]',
        '[servers.a]\ncommand = "python"\nenv = {A = 3}',
        '[servers.a]\nurl = "http://localhost"\nheaders = {A = 3}',
        '[servers.a]\nurl = "http://localhost/${NOT_SET}"',
        '[plugins.acme]\nisolate = true\nmemory = "much"',
    ],
)
def test_a_check_tells_each_mistake_once_and_in_words(install: Install, text: str):
    source = """
        from standards_mcp import Plugin, PluginSettings

        class AcmeSettings(PluginSettings):
            size: int | None = None
            choice: int | str = 1
            lists: list[list[bool] | dict[str, int]] = []

        class AcmePlugin(Plugin):
            settings_type = AcmeSettings
    """
    install("acme", source)
    FILE.write_text(text)
    result = run("config", "check")
    assert result.exit_code in (1, 2)
    assert result.output.count("\n") == 1
    assert not re.search(r"\[(SecretStr|int|bool|lax)|pattern|list\[", result.output)


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (
            'command = "no-such"',
            "'no-such' cannot be started: no such program is on PATH, which is ",
        ),
        ('command = "bin/server"', "'bin/server' cannot be started: it is not in "),
        ('command = "./server.py"', "make it executable, or set command to its interpreter"),
        ('command = "sh server.py -q"', "write 'sh' alone, and the rest as a list into args"),
        ('command = "server.py"', "give its whole path, or install it"),
        ('command = "/no/such"', "'/no/such' cannot be started: the file does not exist"),
        ('command = "no-such"\ncwd = "/no/such"', "its cwd /no/such is not a folder; make it"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths and modes of POSIX")
def test_a_check_says_where_the_program_of_a_server_was_looked_for(server: str, told: str):
    Path("server.py").write_text("print()")
    FILE.write_text(f"[servers.a]\n{server}\n")
    result = run("config", "check")
    assert result.exit_code == 1
    assert result.stdout.startswith("standards-mcp.toml:2: [servers.a] command: ")
    assert told in result.stdout


def test_a_check_misses_the_interpreter_of_an_isolated_plugin(install: Install):
    install("acme", "from standards_mcp import Plugin\nclass AcmePlugin(Plugin): pass")
    FILE.write_text("[plugins.acme]\npython = '/no/such/python'\n")
    result = run("config", "check")
    assert result.exit_code == 1
    expected = "standards-mcp.toml:2: [plugins.acme] python: '/no/such/python' cannot be started"
    assert result.stdout.startswith(expected)


def test_a_check_says_what_it_does_not_start(install: Install):
    install("acme", "from standards_mcp import Plugin\nclass AcmePlugin(Plugin): pass")
    FILE.write_text("[plugins.acme]\nisolate = true\n")
    result = run("config", "check")
    assert result.exit_code == 0
    assert "not started: acme; `standards-mcp plugins check` starts them" in result.stdout


def test_a_check_finds_the_programs_that_are_there():
    text = f"[servers.a]\ncommand = {json.dumps(sys.executable)}\n"
    unused = '[servers.b]\ncommand = "no-such"\nenabled = false\n'
    elsewhere = '[servers.c]\ncommand = "no-such"\nenv = {PATH = "/elsewhere"}\n'
    FILE.write_text(text + unused + elsewhere)
    assert done("config", "check")


@pytest.mark.parametrize(
    ("system", "keys", "told"),
    [
        ("linux", "isolate = true", ""),
        ("linux", "", "it is for a plugin in a process of its own; set isolate = true"),
        ("darwin", "isolate = true", "it has no effect on "),
        ("win32", "isolate = true", "it has no effect on "),
    ],
)
def test_a_check_tells_of_limits_that_hold_nothing(
    monkeypatch: pytest.MonkeyPatch, system: str, keys: str, told: str
):
    FILE.write_text(f'[plugins.search]\nmemory = "2GB"\nprocesses = 9\n{keys}\n')
    monkeypatch.setattr("standards_mcp.config.problems.sys", SimpleNamespace(platform=system))
    result = run("config", "check")
    lines = result.stdout.splitlines()
    if told:
        assert "standards-mcp.toml:2: [plugins.search] memory: " + told in lines[0]
        assert "standards-mcp.toml:3: [plugins.search] processes: " + told in lines[1]
    assert result.exit_code == (1 if told else 0)


def test_a_check_names_variables_for_a_plugin_that_shares_the_environment_of_the_host():
    FILE.write_text('[plugins.search]\nenv = {A = "b"}\n')
    result = run("config", "check")
    assert "[plugins.search] env: it is for a plugin in a process of its own" in result.stdout
    FILE.write_text('[plugins.search]\nisolate = true\nenv = {A = "hunter-4242"}\n')
    assert "hunter" not in done("config", "show")


def test_limits_that_nobody_set_are_no_mistake(monkeypatch: pytest.MonkeyPatch):
    FILE.write_text("[plugins.search]\nisolate = true\n")
    monkeypatch.setattr("standards_mcp.config.problems.sys", SimpleNamespace(platform="darwin"))
    assert done("config", "check")


def test_a_value_of_no_alternative_is_told_with_the_line_of_its_key(install: Install):
    source = """
        from standards_mcp import Plugin, PluginSettings

        class AcmeSettings(PluginSettings):
            choice: bool | int = 1

        class AcmePlugin(Plugin):
            settings_type = AcmeSettings
    """
    install("acme", source)
    FILE.write_text('[plugins.acme]\nchoice = "x"')
    told = run("config", "check").stdout
    assert told.startswith("plugin acme: standards-mcp.toml:2: [plugins.acme] choice: input should")
    assert "valid boolean" in told
    assert " or input should be a valid integer" in told


@pytest.mark.usefixtures("acme")
def test_an_override_that_cannot_be_applied_is_told_with_the_line_of_its_key(monkeypatch: Any):
    monkeypatch.setenv("STANDARDS_MCP_TOOLS__OVERRIDES__ACME.WRITE__TIMEOUT", "3")
    FILE.write_text(
        WITH_TOKEN
        + '[tools.overrides."acme.write"]\ntitle = "Write"\ncache_ttl = 5\n'
        + '[tools.overrides."acme.find".arguments]\ntext.description = "T"\ntext.fixed = 1\n'
    )
    result = run("config", "check")
    assert result.exit_code == 1
    *mistakes, _ = result.stdout.splitlines()  # the last is about the token
    assert mistakes == [
        (
            'standards-mcp.toml:8: [tools.overrides."acme.find".arguments.text] fixed: 1 is not of '
            "type 'string'; the tool is not served"
        ),
        (
            'standards-mcp.toml:5: [tools.overrides."acme.write"] cache_ttl: it needs a read-only '
            "tool; the tool is not served"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('"\\u001b[31mred" = 1', ["config", "check"]),
        ('[plugins."\\u001b[31mred"]', ["config", "check"]),
        ('[tools]\ndisable = ["\\u001b[31m\\u009b31m"]', ["config", "check"]),
        ('[tools]\ndisable = ["\\u001b[31m\\u009b31m"]', ["config", "show", "--origin"]),
        ('[tools]\ndisable = ["\\u001b[31m\\u009b31m"]', ["config", "show", "--json"]),
        ('[tools.overrides."\\u001b[31mred"]\ntitle = "x"', ["config", "show"]),
        ('[tools.overrides.get_standard_details]\ntitle = "\\u001b[31m"', ["tools", "--json"]),
    ],
)
def test_what_a_file_says_never_steers_the_terminal(text: str, arguments: list[str]):
    FILE.write_text(text)
    shown = CliRunner().invoke(cli, arguments, color=True)
    assert "\x1b" not in shown.output
    assert "\x9b" not in shown.output
    assert "1b[31m" in shown.output


def test_what_metadata_say_never_steers_the_terminal(install: Install):
    install("acme", "", version="1\x1b[31m")
    for arguments in (["plugins", "list"], ["plugins", "info", "acme"], ["tools"]):
        shown = CliRunner().invoke(cli, arguments, color=True)
        assert "acme" in shown.output
        assert "\x1b" not in shown.output


# plugins and tools enable|disable


@pytest.mark.usefixtures("acme")
def test_switching_a_plugin_keeps_the_rest_of_the_file():
    FILE.write_text("# mine\n" + WITH_TOKEN + "\n[tools] # see below\ntimeout = 5\n")
    before = FILE.read_text()
    preview = done("plugins", "disable", "acme", "--dry-run")
    assert preview == "standards-mcp.toml\n+[plugins.acme] enabled = false\n"
    assert FILE.read_text() == before
    assert "Changed standards-mcp.toml; the old file is" in done("plugins", "disable", "acme")
    assert backups() == [before]
    assert FILE.read_text() == before.replace('sesame"\n', 'sesame"\nenabled = false\n')
    assert "already has this setting" in done("plugins", "disable", "acme")
    assert "[plugins.acme] enabled = false" in done("plugins", "list")
    done("plugins", "enable", "acme", "--yes")
    assert "acme_find" in done("tools")


@pytest.mark.usefixtures("acme")
def test_a_preview_shows_the_changed_keys_alone():
    text = 'plugins = {acme = {token = "opensesame"}}\ntools = {disable = ["a*"], timeout = 5}\n'
    FILE.write_text(text)
    preview = done("plugins", "disable", "acme", "--dry-run").splitlines()
    assert preview == ["standards-mcp.toml", "+[plugins.acme] enabled = false"]
    preview = done("tools", "disable", "find_*", "--dry-run").splitlines()
    assert preview[1:] == ['-[tools] disable = ["a*"]', '+[tools] disable = ["a*", "find_*"]']
    assert FILE.read_text() == text
    assert "opensesame" not in done("config", "show")


@pytest.mark.slow
def test_edits_at_one_time_are_all_kept():
    FILE.write_text("# mine\n")
    names = ["find_*", "find_r*", "find_re*", "find_rel*", "find_rele*", "find_relev*"]
    edit = [sys.executable, "-m", "standards_mcp", "tools", "disable"]
    edits = [subprocess.Popen([*edit, name], stdout=subprocess.DEVNULL) for name in names]
    assert [each.wait(WAIT) for each in edits] == [0] * len(edits)
    assert sorted(tomllib.loads(FILE.read_text())["tools"]["disable"]) == names


def test_without_a_file_the_users_own_is_made():
    done("plugins", "disable", "search")
    from platformdirs import user_config_path

    file = user_config_path("standards-mcp", appauthor=False) / FILE
    assert tomllib.loads(file.read_text()) == {"plugins": {"search": {"enabled": False}}}
    done("tools", "disable", "get_*")
    assert tomllib.loads(file.read_text())["tools"] == {"disable": ["get_*"]}
    assert len(backups(file)) == 1
    assert not FILE.exists()


@pytest.mark.parametrize("command", [("plugins", "disable", "search"), ("tools", "enable", "x")])
def test_a_file_with_mistakes_is_not_edited(command: tuple[str, ...]):
    FILE.write_text("[tools]\nread_onyl = true\n")
    result = run(*command)
    assert result.exit_code == 2
    assert "standards-mcp.toml:2: [tools] read_onyl" in result.stderr
    assert FILE.read_text() == "[tools]\nread_onyl = true\n"
    assert backups() == []


def test_a_plugin_that_is_not_installed_is_refused_with_the_nearest():
    result = run("plugins", "disable", "serach")
    assert result.exit_code == 2
    assert "no plugin 'serach' is installed; did you mean 'search'?" in result.stderr


@pytest.mark.usefixtures("acme")
def test_tools_are_switched_by_their_names_and_by_globs():
    done("tools", "disable", "acme.find")
    done("tools", "disable", "get_*")
    tools = json.loads(done("tools", "--json"))
    served = {each["name"] for each in tools if each["served"]}
    assert served == {"find_relevant_standards", "acme_write"}
    done("tools", "enable", "get_*", "--yes")
    assert tomllib.loads(FILE.read_text())["tools"]["disable"] == ["acme.find"]
    result = run("tools", "disable", "acme.fnd")
    assert "'acme.fnd' matches no tool; did you mean 'acme.find'?" in result.stderr


def test_a_tool_is_switched_also_where_a_required_plugin_fails(install: Install):
    install("broken", "raise RuntimeError('not today')")
    FILE.write_text("[plugins.broken]\nrequired = true\n")
    result = run("tools", "disable", "web.*")
    assert (result.exit_code, result.stderr) == (0, "")
    assert tomllib.loads(FILE.read_text())["tools"] == {"disable": ["web.*"]}


@pytest.mark.usefixtures("acme")
def test_enabling_tells_what_still_keeps_a_tool_from_being_served():
    FILE.write_text(WITH_TOKEN + '[tools]\ndisable = ["acme.*"]\n')
    result = run("tools", "enable", "acme.find")
    assert result.exit_code == 0
    assert "acme_find is still not served: [tools] disable has 'acme.*'" in result.stderr
    assert "still" not in run("tools", "enable", "acme.*", "--yes").stderr


@pytest.mark.usefixtures("acme")
def test_tools_show_what_they_cost_and_the_total():
    tools = json.loads(done("tools", "--json"))
    cost = sum(each["tokens"] for each in tools if each["served"])
    assert all(each["tokens"] > 10 for each in tools)
    assert done("tools").endswith(f"\n4 served, about {cost:,} tokens; 0 not\n")


@pytest.mark.usefixtures("acme")
def test_a_plugin_is_shown_with_its_tools_and_keys():
    data = json.loads(done("plugins", "info", "acme", "--json"))
    assert data["tools"] == ["acme_find", "acme_write"]
    keys = {key["name"]: key for key in data["keys"]}
    assert keys["token"]["description"] == "Opens the door."
    assert keys["weights"]["default"] == '{ "a b" = 0.5 }'
    assert set(keys) >= {"enabled", "required", "token", "weights"}
    assert "[plugins.acme]\n" in done("plugins", "info", "acme")
    FILE.unlink()
    assert "field required" in " ".join(done("plugins", "info", "acme").split())


@pytest.mark.parametrize("text", [WITH_TOKEN, ""], ids=["configured", "not configured"])
@pytest.mark.usefixtures("acme")
def test_the_keys_of_a_plugin_that_are_required_or_secret_are_marked(text: str):
    FILE.write_text(text)
    marks = {
        key["name"]: (key["required"], key["secret"])
        for key in json.loads(done("plugins", "info", "acme", "--json"))["keys"]
    }
    assert marks["token"] == (True, True)
    assert marks["enabled"] == marks["weights"] == marks["depth"] == (False, False)
    shown = done("plugins", "info", "acme")
    assert re.search(
        r"^token = \.\.\. +Required, secret\. Opens the door\. Set", shown, re.MULTILINE
    )
    told = "Required, secret. Opens the door. Set it by STANDARDS_MCP_PLUGINS__ACME__TOKEN."
    assert told in " ".join(shown.split())
    assert re.search(r"^profile\.depth = 1$", shown, re.MULTILINE)


def test_a_secret_where_others_can_read_it_is_told_and_taken(install: Install):
    source = """
        from pydantic import BaseModel, SecretStr
        from standards_mcp import Plugin, PluginSettings

        class Door(BaseModel):
            key: SecretStr
            width: int = 1

        class SafeSettings(PluginSettings):
            token: SecretStr
            doors: list[Door] = []
            main: Door | None = None
            plain: str = ""

        class SafePlugin(Plugin):
            settings_type = SafeSettings
    """
    install("safe", source)
    Path(".env").write_text("STANDARDS_MCP_PLUGINS__SAFE__TOKEN=opensesame")
    FILE.write_text(
        "strict = true\n[plugins.safe]\nplain = 'x'\ntoken = 'opensesame'\n"
        "doors = [{key = 'opensesame'}]\n[plugins.safe.main]\nwidth = 2\nkey = 'opensesame'\n"
    )
    expected = [
        f"{where}: a secret does not belong here; set STANDARDS_MCP_PLUGINS__SAFE__{variable} in "
        "the environment or in .env"
        for where, variable in (
            ("command line: [plugins.safe] token", "TOKEN"),
            ("standards-mcp.toml:4: [plugins.safe] token", "TOKEN"),
            ("standards-mcp.toml:5: [plugins.safe] doors", "DOORS"),
            ("standards-mcp.toml:8: [plugins.safe.main] key", "MAIN__KEY"),
        )
    ]
    pair = "plugins.safe.token=opensesame"
    shown = done("--set", pair, "config", "check").splitlines()
    assert shown == [*expected, "ok: standards-mcp.toml"]
    logged = run("--set", pair, "tools").stderr
    assert all(line in logged for line in expected)
    assert "opensesame" not in logged


def test_patterns_that_may_be_of_a_failed_plugin_are_told_as_such(install: Install):
    install("acme", ACME)
    FILE.write_text('[tools]\ndisable = ["acme.*"]\n[tools.overrides."acme.find"]\nname = "f"\n')
    lines = run("config", "check").stdout.splitlines()
    assert len(lines) == 3
    assert all(
        line.endswith(" (it may belong to a plugin that failed: acme)") for line in lines[1:]
    )
    Path(".env").write_text("STANDARDS_MCP_PLUGINS__ACME__TOKEN=opensesame")
    assert done("config", "check") == "ok: standards-mcp.toml\n"


@pytest.mark.slow
@pytest.mark.usefixtures("acme")
def test_a_plugin_is_shown_in_the_state_in_which_it_is_listed():
    def states() -> list[str]:
        listed = json.loads(done("plugins", "list", "--json"))
        shown = json.loads(done("plugins", "info", "acme", "--json"))
        (status,) = (each["status"] for each in listed if each["name"] == "acme")
        return [status, shown["status"]]

    assert states() == ["discovered", "registered"]
    assert states() == ["registered", "registered"]
    done("plugins", "check")
    assert states() == ["started", "started"]
    assert states() == ["started", "started"]


@pytest.mark.slow
@pytest.mark.parametrize("isolate", ["false", "true"])
@pytest.mark.usefixtures("acme")
def test_a_secret_that_is_missing_is_asked_for_by_its_variable_and_not_in_the_file(isolate: str):
    FILE.write_text(f"[plugins.acme]\nisolate = {isolate}\n")
    result = run("plugins", "check")
    assert result.exit_code == 1
    assert (
        "[plugins.acme] token: field required; set STANDARDS_MCP_PLUGINS__ACME__TOKEN in the "
        "environment or in .env"
    ) in " ".join(result.stdout.split())
    assert "standards-mcp.toml" not in result.stdout


def test_a_secret_is_marked_wherever_it_stands_in_a_key(install: Install):
    source = """
        from pydantic import SecretStr
        from standards_mcp import Plugin, PluginSettings

        class SafeSettings(PluginSettings):
            one: SecretStr | None = None
            several: tuple[SecretStr, ...] = ()
            by_name: dict[str, SecretStr] = {}
            needed: int
            plain: str = ""

        class SafePlugin(Plugin):
            settings_type = SafeSettings
    """
    install("safe", source)
    keys = json.loads(done("plugins", "info", "safe", "--json"))["keys"]
    assert [key["name"] for key in keys if key["secret"]] == ["one", "several", "by_name"]
    assert [key["name"] for key in keys if key["required"]] == ["needed"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["tools"], 0),
        (["prompts"], 0),
        (["resources"], 0),
        (["plugins", "list"], 0),
        (["plugins", "info", "broken"], 0),
        (["config", "show"], 0),
        (["plugins", "check"], 1),
        (["config", "check"], 1),
        (["call", "get_standard_details", "--args", '{"standard_id": ""}'], 2),
        (["plugins", "info", "nobody"], 2),
        (["--set", "tools.timeout=0", "tools"], 2),
        (["--set", "plugins.broken.required=true", "tools"], 1),
    ],
)
def test_what_lists_is_done_where_a_plugin_failed_and_what_judges_is_not(
    install: Install, arguments: list[str], code: int
):
    install("broken", "raise RuntimeError('not today')")
    assert run(*arguments).exit_code == code


# Editing, as a mapping from text to text

_words = st.text("abcx", min_size=1, max_size=2)
_lists = st.lists(_words | st.just("web.*"), max_size=3)
_plugins = st.dictionaries(
    _words, st.fixed_dictionaries({}, optional={"enabled": st.booleans(), "n": st.integers()})
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a file, its tables in any order, some inline and some dotted, with comments."""
    parts = []
    for key in ("enable", "disable"):
        if draw(st.booleans()):
            items = ", ".join(map(json.dumps, draw(_lists)))
            parts.append(f"{key} = [ {items} ] # {key}")
    tools = "\n".join(["[tools] # the tools", *parts]) if draw(st.booleans()) else ""
    tables = [tools, "[catalog]\nbackend = 'local' # here"]
    for name, keys in draw(_plugins).items():
        lines = [f"{key} = {json.dumps(value)} # {key}" for key, value in keys.items()]
        tables.append("\n".join([f"[plugins.{name}] # {name}", *lines]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    chosen = draw(st.permutations(tables))
    head = "# mine\nautoload = true # yes\n\n"
    return mark + (head + "\n".join(chosen) + "\n").replace("\n", end)


def read(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix("\ufeff"))


def meaning(text: str) -> dict[str, Any]:
    """Return what a file says; an empty list of what is disabled says as much as none."""
    values = read(text)
    if not values.get("tools", {}).get("disable", True):
        del values["tools"]["disable"]
    if not values.get("tools", True):
        del values["tools"]
    return values


def comments(text: str) -> list[str]:
    return sorted(line.partition("#")[2] for line in text.splitlines() if "#" in line)


@given(files(), _words, st.booleans())
def test_an_edit_changes_one_key_and_keeps_comments_and_line_ends(text: str, name: str, on: bool):
    edited = with_plugin(text, name, enabled=on)
    expected = read(text)
    expected.setdefault("plugins", {}).setdefault(name, {})["enabled"] = on
    assert read(edited) == expected

    pattern = name
    off = with_tool_disabled(text, pattern)
    expected = read(text)
    disable = expected.setdefault("tools", {}).setdefault("disable", [])
    disable += [] if pattern in disable else [pattern]
    assert read(off) == expected

    back = with_tool_enabled(text, pattern)
    expected = read(text)
    tools = expected.get("tools", {})
    if pattern in tools.get("disable", ()):
        tools["disable"] = [each for each in tools["disable"] if each != pattern]
    elif "enable" in tools and pattern not in tools["enable"] and "*" not in tools["enable"]:
        tools["enable"].append(pattern)
    assert meaning(back) == meaning(tomlkit.dumps(expected))
    if off != text:
        assert meaning(with_tool_enabled(off, pattern)) == meaning(text)
    for after in (edited, off, back):
        assert comments(after) == comments(text)
        assert after.startswith("\ufeff") == text.startswith("\ufeff")
        assert ("\r" in after) == ("\r" in text)
        assert after.replace("\r\n", "\n").count("\r") == 0
        assert after.count("\r") in (0, after.count("\n"))


PLUGIN_TABLES = [
    "plugins = {}\n",
    "plugins = {search = {n = 1}}\n",
    "plugins.search.n = 1\n",
    "[plugins]\nsearch = {n = 1}\n",
    "[plugins.search.inner]\nx = 1\n",
    "a = 1",
    "",
]


@pytest.mark.parametrize("text", PLUGIN_TABLES)
def test_a_plugin_is_switched_however_its_table_is_written(text: str):
    expected = read(text)
    expected.setdefault("plugins", {}).setdefault("search", {})["enabled"] = False
    assert read(with_plugin(text, "search", enabled=False)) == expected


def test_a_file_with_a_byte_mark_is_edited():
    FILE.write_bytes(b"\xef\xbb\xbf[tools]\r\ntimeout = 5\r\n")
    done("tools", "disable", "get_*")
    assert FILE.read_bytes() == (b'\xef\xbb\xbf[tools]\r\ntimeout = 5\r\ndisable = ["get_*"]\r\n')


# Profiles and trust


def test_a_profile_narrows_what_is_served_and_is_installed_with_it():
    FILE.write_text('[profiles.teacher]\nenable = ["find_*"]\n')
    served = [
        each["name"]
        for each in json.loads(done("--profile", "teacher", "tools", "--json"))
        if each["served"]
    ]
    assert served == ["find_relevant_standards"]
    entry = json.loads(done("install", "cursor", "--profile", "teacher", "--print"))
    args = entry["mcpServers"]["standards"]["args"]
    assert args[-4:] == ["--config", str(FILE.resolve()), "--profile", "teacher"]
    for arguments in (
        ["--profile", "techer", "tools"],
        ["install", "cursor", "--profile", "techer", "--print"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "no table [profiles.techer]; did you mean 'teacher'?" in result.stderr


def test_a_client_is_given_the_file_in_force(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    FILE.write_text("")
    named = tmp_path / "named.toml"
    named.write_text("")
    monkeypatch.setenv("STANDARDS_MCP_CONFIG", str(named))
    entry = json.loads(done("install", "cursor", "--print"))
    assert entry["mcpServers"]["standards"]["args"][-2:] == ["--config", str(named)]


@pytest.mark.parametrize("pattern", ["standards-mcp-acme", "standards_mcp_*", "Standards.MCP-Acme"])
def test_a_plugin_is_imported_if_its_distribution_is_trusted(install: Install, pattern: str):
    install("acme", "from standards_mcp import Plugin\nclass AcmePlugin(Plugin): ...")
    install("evil", "open('imported', 'w')", distribution="evil")
    FILE.write_text(f'trusted = ["standards-mcp", "{pattern}"]\n')
    states = {each["name"]: each for each in json.loads(done("plugins", "list", "--json"))}
    assert states["evil"]["reason"] == "trusted has no pattern for 'evil'"
    done("tools")
    states = {
        each["name"]: each["status"] for each in json.loads(done("plugins", "list", "--json"))
    }
    assert states == {
        "acme": "registered",
        "evil": "disabled",
        "lookup": "registered",
        "search": "registered",
    }
    assert not Path("imported").exists()


def test_what_keeps_an_enabled_plugin_from_loading_is_told(install: Install):
    install("acme", ACME)
    FILE.write_text('trusted = ["standards-mcp"]\n')
    assert run("plugins", "enable", "acme", "--dry-run").stderr == ""
    told = run("plugins", "enable", "acme")
    assert told.exit_code == 0
    assert told.stderr == (
        "acme is still not loaded: trusted has no pattern for 'standards-mcp-acme'\n"
    )
    FILE.write_text("")
    assert run("plugins", "enable", "acme").stderr == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'trusted = ["standards_mcp", "standards-mcp-acm"]',
            (
                "1: trusted: 'standards-mcp-acm' matches no distribution; did you mean "
                "'standards-mcp'?"
            ),
        ),
        (
            '[profiles.teacher]\nplugins = ["serach"]',
            "2: [profiles.teacher] plugins: 'serach' matches no plugin; did you mean 'search'?",
        ),
        (
            '[profiles.teacher]\ndisable = ["zzz.*"]',
            "2: [profiles.teacher] disable: 'zzz.*' matches no tool; see `standards-mcp tools`",
        ),
        (
            '[server.auth.scopes]\nreader = ["find_relevent*", "*", "get_*"]',
            (
                "2: [server.auth.scopes] reader: 'find_relevent*' matches no tool, prompt or "
                "resource; did you mean 'find_relevant_standards'?"
            ),
        ),
    ],
)
def test_a_check_tells_of_patterns_that_match_nothing_in_force_or_not(text: str, told: str):
    FILE.write_text(text)
    result = run("config", "check")
    assert (result.exit_code, result.stdout) == (1, f"standards-mcp.toml:{told}\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('host = "0.0.0.0"\nallowed_hosts = ["a.example.org"]', "needs no token"),
        ("auth.required = true", "no token exists"),
    ],
)
def test_a_check_tells_whom_a_service_lets_in(text: str, told: str):
    FILE.write_text(f"[server]\n{text}\n")
    result = run("config", "check")
    assert result.exit_code == 0
    warning, verdict = result.stdout.splitlines()
    assert told in warning
    assert verdict.startswith("ok: ")


# config check: what keeps the service from starting, and what no call accepts

REFUSED = {
    "subject": (
        '[tools.overrides.find_relevant_standards.arguments]\nsubject = { fixed = "mathz" }\n',
        1,
        "2: [tools.overrides.find_relevant_standards.arguments.subject] fixed: Unknown subject",
    ),
    "url": (
        '[servers.x]\nurl = "example.org"\n',
        1,
        "standards-mcp.toml:2: [servers.x] url: input should begin with https:// or http://",
    ),
    "tokens": (
        "[tools]\nmax_output_tokens = 99\n",
        2,
        "[tools] max_output_tokens: input should be greater than or equal to 100",
    ),
    "exposed": ('[server]\nhost = "0.0.0.0"\n', 1, "[server] host is '0.0.0.0', and anybody who"),
    "socket": ('[server]\nuds = "gone/socket"\n', 1, "[server] uds: the folder "),
    "workers": ("[server]\nworkers = 4\n", 1, "[server] workers is 4, and a session lives in one"),
    "audit": (
        '[server.audit]\npath = "none/audit.jsonl"\n',
        1,
        "[server] audit.path: the folder ",
    ),
    "catalog": ('[catalog]\npath = "none/such"\n', 1, "2: [catalog] path: the folder none, which "),
    "file": (
        '[catalog]\npath = "standards-mcp.toml"\n',
        1,
        "standards-mcp.toml is not a folder",
    ),
    "twice": (
        "[tools]\ntimeout = 5\n\n[tools]\n",
        2,
        "standards-mcp.toml:4: not valid TOML: [tools] is set twice; put its keys into",
    ),
    "key": (
        "[tools]\ntimeout = 5  # s\ntimeout = 6\n",
        2,
        "standards-mcp.toml:3: not valid TOML: timeout is set twice; keep one of them",
    ),
    "text": (
        "[catalog.local]\nmodel = 5\n",
        2,
        "2: [catalog.local] model: input should be text in quotes, for example",
    ),
}


@pytest.mark.usefixtures("starter_catalog")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_no_valid_configuration(name: str, monkeypatch: pytest.MonkeyPatch):
    text, code, message = REFUSED[name]
    if "path" in text:  # the variable would win
        monkeypatch.delenv("STANDARDS_MCP_CATALOG__PATH")
    FILE.write_text(text, encoding="utf-8")
    result = run("config", "check")
    assert result.exit_code == code
    assert message in result.output
    assert "ok: " not in result.output


@pytest.mark.usefixtures("starter_catalog")
def test_a_value_that_calls_accept_is_fixed():
    table = "[tools.overrides.find_relevant_standards.arguments]"
    FILE.write_text(f'{table}\nsubject = {{ fixed = "math" }}\ngrade = {{ fixed = "3" }}\n')
    assert done("config", "check").startswith("ok: ")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"[tools]\n# \xff\n",
            "standards-mcp.toml: line 2 is not UTF-8 text; save the file as UTF-8",
        ),
        ("[tools]".encode("utf-16"), "standards-mcp.toml: it is UTF-16 text; save it as UTF-8"),
    ],
)
def test_a_file_that_is_not_utf_8_is_told_by_its_line(data: bytes, message: str):
    FILE.write_bytes(data)
    for command in (["config", "check"], ["tools", "disable", "find_*"]):
        result = run(*command)
        assert result.exit_code in (1, 2)
        assert message in result.output
        assert "codec" not in result.output
    assert FILE.read_bytes() == data


def test_a_folder_with_the_name_of_the_file_is_refused():
    FILE.mkdir()
    result = run("config", "check")
    assert result.exit_code == 2
    assert (
        "standards-mcp.toml: it is a folder, and should be a TOML file; rename it" in result.output
    )


@pytest.mark.parametrize("pattern", ["nosuch", "nosuch.*", "acme.fnd"])
@pytest.mark.parametrize("command", ["enable", "disable"])
@pytest.mark.usefixtures("acme")
def test_a_pattern_without_a_tool_is_refused_and_not_written(command: str, pattern: str):
    result = run("tools", command, pattern)
    assert result.exit_code == 2
    hint = "did you mean 'acme.find'?" if pattern == "acme.fnd" else "see `standards-mcp tools`"
    assert f"{pattern!r} matches no tool; {hint}; nothing was changed" in result.output
    assert FILE.read_text() == WITH_TOKEN


@pytest.mark.usefixtures("acme")
def test_a_pattern_without_a_tool_is_taken_out_again():
    FILE.write_text('[tools]\ndisable = ["gone"]\n')
    assert "Changed" in done("tools", "enable", "gone", "--yes")
    assert "gone" not in FILE.read_text()
