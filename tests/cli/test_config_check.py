"""``standards-mcp config check``: mistakes in the file, and settings without effect."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from support.command_line import FILE, WITH_TOKEN, done, run, with_settings

from standards_mcp.cli import cli
from standards_mcp.config.loading import load_settings
from standards_mcp.config.problems import check_programs

Install = Callable[..., Path]


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
    ("text", "told"),
    [
        ('[tools]\ndisable = ["find_relevent*", "find_relevent*"]', ""),
        ('profile = "a"\n[profiles.a]\nplugins = ["nothing"]', ""),
        ('[resources.overrides.nothing]\nname = "a"', ""),
        ('[plugins.acme]\nsize = "big"', ""),
        ("[plugins.acme]\n\nchoice = 'x'", "plugin acme: standards-mcp.toml:3: [plugins.acme] ch"),
        ('[servers.a]\ncommand = "python"\nargs = [3]', ""),
        ('[servers.a]\nurl = "http://localhost/${NOT_SET}"', ""),
        ('[plugins.acme]\nisolate = true\nmemory = "much"', ""),
        ("[plugins.acme]\nenv = {A = 'b'}", "[plugins.acme] env: it is for a plugin in a process"),
        (
            "[plugins.acme]\npython = '/no/such'",
            "standards-mcp.toml:2: [plugins.acme] python: '/no/such' cannot be started",
        ),
    ],
)
def test_a_check_reports_each_mistake_once_in_words(install: Install, text: str, told: str):
    fields = ("size: int | None = None", "choice: bool | int = 1")
    lists = "lists: list[list[bool] | dict[str, int]] = []"
    install("acme", with_settings("acme", *fields, lists))
    FILE.write_text(text)
    result = run("config", "check")
    assert result.exit_code in (1, 2)
    assert result.output.count("\n") == 1
    assert told in result.output
    assert not re.search(r"\[(SecretStr|int|bool|lax)|pattern|list\[", result.output)


CANNOT = "cannot be started: "


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ('command = "no-such"', f"'no-such' {CANNOT}no such program is on PATH, which is "),
        ('command = "bin/server"', f"'bin/server' {CANNOT}it is not in "),
        ('command = "./server.py"', "make it executable, or set command to its interpreter"),
        (
            'command = "sh server.py -q"',
            "set command to 'sh', and put the other words into the list args",
        ),
        ('command = "server.py"', "give its whole path, or install it"),
        ('command = "no-such"\ncwd = "/no/such"', "its cwd /no/such is not a folder; make it"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths and modes of POSIX")
def test_a_check_reports_a_missing_program_with_the_searched_places(server: str, told: str):
    Path("server.py").write_text("print()")
    FILE.write_text(f"[servers.a]\n{server}\n")
    result = run("config", "check")
    assert result.exit_code == 1
    assert result.stdout.startswith("standards-mcp.toml:2: [servers.a] command: ")
    assert told in result.stdout


@pytest.mark.parametrize(
    ("text", "told", "fix"),
    [
        (
            "[servers.a]\ncommand = 'sh'\ncwd = '/no/such'",
            "its cwd /no/such is not a folder; make it, or correct cwd",
            "make the folder /no/such, or correct [servers.a] cwd",
        ),
        (
            "[plugins.a]\npython = 'sh -I'",
            "set python to 'sh', and leave out the other words",
            "set [plugins.a] python to the whole path of an interpreter that exists",
        ),
        (
            "[plugins.a]\npython = './server.py'",
            "is not executable; make it executable, or set python to an interpreter",
            "set [plugins.a] python to the whole path of an interpreter that exists",
        ),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths and modes of POSIX")
def test_the_fix_of_a_missing_program_fits_its_reason_and_key(text: str, told: str, fix: str):
    Path("server.py").write_text("print()")
    FILE.write_text(text)
    (problem,) = check_programs(load_settings().settings)
    assert problem.message.endswith(told)
    assert problem.fix == fix


def test_a_check_lists_the_plugins_that_it_does_not_start(install: Install):
    install("acme", "from standards_mcp import Plugin\nclass AcmePlugin(Plugin): pass")
    FILE.write_text("[plugins.acme]\nisolate = true\n")
    result = run("config", "check")
    assert result.exit_code == 0
    assert (
        "not started: acme; `standards-mcp plugins check` starts and checks them" in result.stdout
    )


def test_a_check_accepts_existing_programs():
    assert done("config", "check") == "ok: no file; every key has its default\n"
    used = f"[servers.a]\ncommand = {json.dumps(sys.executable)}\n"
    unused = '[servers.b]\ncommand = "no-such"\nenabled = false\n'
    elsewhere = '[servers.c]\ncommand = "no-such"\nenv = {PATH = "/elsewhere"}\n'
    FILE.write_text(used + unused + elsewhere)
    assert done("config", "check").startswith("ok: ")


@pytest.mark.parametrize(
    ("system", "keys", "told"),
    [
        ("linux", "isolate = true", ""),
        ("linux", "", "it is for a plugin in a process of its own; set isolate = true"),
        ("win32", "isolate = true", "it has no effect on "),
    ],
)
def test_a_check_reports_limits_without_effect(
    monkeypatch: pytest.MonkeyPatch, system: str, keys: str, told: str
):
    monkeypatch.setattr("standards_mcp.config.problems.sys", SimpleNamespace(platform=system))
    FILE.write_text("[plugins.search]\nisolate = true\n")
    assert done("config", "check"), "the defaults are not reported"
    FILE.write_text(f'[plugins.search]\nmemory = "2GB"\nprocesses = 9\n{keys}\n')
    result = run("config", "check")
    lines = result.stdout.splitlines()
    if told:
        assert "standards-mcp.toml:2: [plugins.search] memory: " + told in lines[0]
        assert "standards-mcp.toml:3: [plugins.search] processes: " + told in lines[1]
    assert result.exit_code == (1 if told else 0)


@pytest.mark.usefixtures("acme")
def test_an_invalid_override_is_reported_with_its_line(monkeypatch: Any):
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
        f"standards-mcp.toml:{place}; the tool is not served"
        for place in (
            "8: [tools.overrides.\"acme.find\".arguments.text] fixed: 1 is not of type 'string'",
            '5: [tools.overrides."acme.write"] cache_ttl: it needs a read-only tool',
        )
    ]


COLOUR = "\\u001b[31m"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (f'"{COLOUR}red" = 1', "config check"),
        (f'[plugins."{COLOUR}red"]', "config check"),
        (f'[tools]\ndisable = ["{COLOUR}\\u009b31m"]', "config check"),
        (f'[tools]\ndisable = ["{COLOUR}\\u009b31m"]', "config show --origin"),
        (f'[tools]\ndisable = ["{COLOUR}\\u009b31m"]', "config show --json"),
        (f'[tools.overrides.get_standard_details]\ntitle = "{COLOUR}"', "tools --json"),
    ],
)
def test_a_file_cannot_print_control_characters(text: str, command: str):
    FILE.write_text(text)
    shown = CliRunner().invoke(cli, command.split(), color=True).output
    assert not {"\x1b", "\x9b"} & set(shown)
    assert "1b[31m" in shown


def test_metadata_cannot_print_control_characters(install: Install):
    install("acme", "", version="1\x1b[31m")
    for command in ("plugins list", "plugins info acme", "tools"):
        shown = CliRunner().invoke(cli, command.split(), color=True).output
        assert "acme" in shown
        assert "\x1b" not in shown


# Settings with which the service cannot start, and values that no call accepts

ARGUMENTS = "tools.overrides.find_relevant_standards.arguments"
REFUSED = {
    f'[{ARGUMENTS}]\nsubject = {{ fixed = "mathz" }}': f"2: [{ARGUMENTS}.subject] fixed: Unknown s",
    '[servers.x]\nurl = "example.org"': "2: [servers.x] url: input should begin with https:// or",
    '[server]\nhost = "0.0.0.0"': "[server] host is '0.0.0.0', and anybody who",
    '[server]\nuds = "gone/socket"': "[server] uds: the folder ",
    "[server]\nworkers = 4": "[server] workers is 4, and a session lives in one",
    '[server.audit]\npath = "none/audit.jsonl"': "[server] audit.path: the folder ",
    '[plugins.catalog]\npath = "none/such"': "2: [plugins.catalog] path: its parent folder",
    '[plugins.catalog]\npath = "standards-mcp.toml"': "standards-mcp.toml is no folder; c",
    "[plugins.catalog.local]\nmodel = 5": "local] model: input should be text in quotes, for exam",
}


@pytest.mark.usefixtures("starter_catalog")
@pytest.mark.parametrize("text", REFUSED)
def test_settings_that_cannot_work_are_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    if "path" in text:  # the variable would win
        monkeypatch.delenv("STANDARDS_MCP_PLUGINS__CATALOG__PATH")
    FILE.write_text(text, encoding="utf-8")
    result = run("config", "check")
    assert result.exit_code in (1, 2)
    assert REFUSED[text] in result.output
    assert "ok: " not in result.output


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[tools]\n# \xff\n", "toml: line 2 is not UTF-8 text; save the file as UTF-8"),
        ("[tools]".encode("utf-16"), "standards-mcp.toml: it is UTF-16 text; save it as UTF-8"),
    ],
)
def test_a_file_that_is_not_utf_8_is_reported_with_its_line(data: bytes, message: str):
    FILE.write_bytes(data)
    for command in (["config", "check"], ["tools", "disable", "find_*"]):
        result = run(*command)
        assert result.exit_code in (1, 2)
        assert message in result.output
        assert "codec" not in result.output
    assert FILE.read_bytes() == data
