"""What serves more than before is told, and asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import FILE, run
from support.terminal import on_a_terminal

Install = Callable[..., Path]
CURSOR = Path(".cursor", "mcp.json")
GREETER = """
    from standards_mcp import Plugin, Prompt, Tool, hookimpl

    def greet() -> str: return "hello"
    def grow() -> str: return "more"
    def welcome(tools): return "hi"

    class GreeterPlugin(Plugin):
        @hookimpl
        def register_tools(self):
            return [
                Tool(name="greet", description="Greet.", function=greet),
                Tool(name="grow", description="Grow.", function=grow),
            ]

        @hookimpl
        def register_prompts(self):
            return [Prompt(name="welcome", description="W.", function=welcome, needs=["greet"])]
"""


def served() -> set[str]:
    tools = json.loads(run("tools", "--json").stdout)
    return {each["name"] for each in tools if each["served"]}


@pytest.mark.parametrize(
    ("text", "pattern", "told"),
    [
        ('profile = "p"\n[tools]\ndisable = ["grow"]\n[profiles.p]\nplugins = ["search"]\n', "grow",
         "This also serves: grow"),
        ('[tools]\ndisable = ["b*"]\n', "b*", "all matches in broken, which failed"),
        ('strict = true\n[tools]\ndisable = ["b*"]\n', "b*",
         "which cannot be listed (plugin 'broken' failed"),
    ],
    ids=["outside of the profile", "of a failed plugin", "of a strict host"],
)  # fmt: skip
def test_what_is_served_to_anybody_is_announced(
    install: Install, text: str, pattern: str, told: str
):
    install("greeter", GREETER)
    install("broken", "raise RuntimeError('not today')")
    FILE.write_text(text)
    assert told in run("tools", "enable", pattern).stderr


def test_newly_served_tools_are_listed_and_need_confirmation(install: Install):
    install("greeter", GREETER)
    text = '[tools]\nenable = ["find_*"]\n'
    FILE.write_text(text)
    refused = run("tools", "enable", "g*")
    assert refused.exit_code == 1
    told = "This also serves: get_standard_details, greet, grow, the prompt welcome"
    assert f"{told}. Nothing was changed. Run again with --yes to confirm" in refused.stderr
    assert told in run("tools", "enable", "g*", "--dry-run").stdout
    assert FILE.read_text() == text
    agreed = run("tools", "enable", "g*", "--yes")
    assert (agreed.exit_code, agreed.stdout.startswith(told)) == (0, True)
    assert "already has this setting" in run("tools", "enable", "g*").stdout


@pytest.mark.slow
def test_a_terminal_is_asked(install: Install):
    install("greeter", GREETER)
    text = '[tools]\ndisable = ["grow"]\n'
    FILE.write_text(text)
    code, output = on_a_terminal("n", "tools", "enable", "grow")
    assert code == 1
    assert "This also serves: grow" in output
    assert "nothing was changed" in output
    assert FILE.read_text() == text
    code, output = on_a_terminal("y", "tools", "enable", "grow")
    assert (code, "grow" in FILE.read_text()) == (0, False)


def test_enabling_a_plugin_that_was_off_needs_confirmation(install: Install):
    install("greeter", GREETER)
    FILE.write_text("autoload = false\n")
    refused = run("plugins", "enable", "greeter")
    assert refused.exit_code == 1
    assert (
        "This also serves: all contributions of the plugin 'greeter', whose code will run"
        in refused.stderr
    )
    assert FILE.read_text() == "autoload = false\n"
    FILE.write_text("")
    assert run("plugins", "enable", "greeter").exit_code == 0  # it was on already


def test_an_entry_loses_its_limits_only_after_confirmation():
    FILE.write_text("[profiles.class]\nread_only = true\n")
    narrow = ["--set", "tools.read_only=true", "install", "cursor", "--profile", "class"]
    assert run(*narrow).exit_code == 0
    file = Path.home() / CURSOR
    before = file.read_text()
    FILE.unlink()
    refused = run("install", "cursor")
    assert refused.exit_code == 1
    for option in ("--config", "--profile class", "--set tools.read_only=true"):
        assert option in refused.stderr
    assert file.read_text() == before
    assert run("install", "cursor", "--dry-run").exit_code == 0
    assert run("install", "cursor", "--name", "other").exit_code == 0
    assert run("install", "cursor", "--yes").exit_code == 0
    assert json.loads(file.read_text())["mcpServers"]["standards"]["args"] == []


def test_a_configuration_that_an_entry_names_by_a_variable_is_not_replaced_unasked(tmp_path: Path):
    locked = tmp_path / "locked.toml"
    assert run("install", "cursor", "--env", f"STANDARDS_MCP_CONFIG={locked}").exit_code == 0
    FILE.write_text("")
    refused = run("install", "cursor")
    assert (refused.exit_code, f"loses --config {locked}" in refused.stderr) == (1, True)
    FILE.unlink()
    assert run("install", "cursor").exit_code == 0, "the variable stays, and so does the file"


def doctor_of_cursor() -> dict[str, Any]:
    found = json.loads(run("doctor", "--json").stdout)
    (finding,) = (each for each in found if each["subject"] == "Cursor")
    return finding


@pytest.mark.slow
def test_the_command_that_doctor_suggests_keeps_the_limits_of_an_entry():
    school = Path("the school.toml")
    school.write_text("[profiles.class]\nread_only = true\n")
    options = ["--config", str(school), "--set", 'tools.disable=["a", "b"]']
    install = ["install", "cursor", "--profile", "class", "--env", "STANDARDS_MCP_STRICT=true"]
    assert run(*options, *install).exit_code == 0
    file = Path.home() / CURSOR
    data: dict[str, Any] = json.loads(file.read_text())
    whole = dict(data["mcpServers"]["standards"])
    data["mcpServers"]["standards"]["command"] = "/nowhere/standards-mcp"
    file.write_text(json.dumps(data))
    parts = doctor_of_cursor()["fix"].split("`")
    (command,) = (part for part in parts if part.startswith("standards-mcp"))
    assert run(*shlex.split(command)[1:]).exit_code == 0
    mended = json.loads(file.read_text())["mcpServers"]["standards"]
    assert mended["env"] == whole["env"]
    assert sorted(mended["args"]) == sorted(whole["args"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        {"args": ["--config=gone.toml", "--profile", "class"]},
        {"args": [], "env": {"STANDARDS_MCP_CONFIG": "/nowhere/gone.toml"}},
    ],
)
def test_doctor_has_no_command_for_an_entry_whose_file_is_gone(entry: dict[str, Any]):
    assert run("install", "cursor").exit_code == 0
    file = Path.home() / CURSOR
    data = json.loads(file.read_text())
    data["mcpServers"]["standards"] |= entry
    file.write_text(json.dumps(data))
    finding = doctor_of_cursor()
    assert "gone.toml, which does not exist" in finding["message"]
    assert finding["fix"].startswith("Put the file back")
    assert "install" not in finding["fix"]
