"""What serves more than before is told, and asked for; what is undone is as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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
    ("text", "kind", "name"),
    [
        ("", "plugins", "greeter"),
        ("[tools] # ours\ntimeout = 5\n", "plugins", "greeter"),
        ("[plugins.search] # ours\nmax_results = 3\n", "plugins", "search"),
        ("plugins = {search = {max_results = 3}}\n", "plugins", "search"),
        ("autoload = false\n\n[plugins.greeter]\nenabled = true\n", "plugins", "greeter"),
        ("\ufeff[tools]\r\ntimeout = 5\r\n", "plugins", "greeter"),
        ('[servers.peer] # ours\ncommand = "peer"\n', "plugins", "peer"),
        ('[tools]\nenable = ["greet"]\n', "tools", "g*"),
    ],
)
def test_what_was_disabled_and_enabled_again_is_as_it_was(
    install: Install, text: str, kind: str, name: str
):
    install("greeter", GREETER)
    FILE.write_bytes(text.encode())
    assert run(kind, "disable", name).exit_code == 0
    assert FILE.read_bytes() != text.encode()
    enabled = run(kind, "enable", name, "--yes")
    assert enabled.exit_code == 0, enabled.stderr
    assert FILE.read_bytes().decode() == text


@pytest.mark.parametrize(
    ("text", "pattern", "told"),
    [
        ('profile = "p"\n[tools]\ndisable = ["grow"]\n[profiles.p]\nplugins = ["search"]\n', "grow",
         "This change would also expose: grow"),
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
    told = "This change would also expose: get_standard_details, greet, grow, the prompt welcome"
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
    assert "This change would also expose: grow" in output
    assert "nothing was changed" in output
    assert FILE.read_text() == text
    code, output = on_a_terminal("y", "tools", "enable", "grow")
    assert (code, FILE.read_text()) == (0, "")


def test_enabling_a_plugin_that_was_off_needs_confirmation(install: Install):
    install("greeter", GREETER)
    FILE.write_text("autoload = false\n")
    refused = run("plugins", "enable", "greeter")
    assert refused.exit_code == 1
    exposed = "all contributions of the plugin 'greeter', whose code will run"
    assert f"This change would also expose: {exposed}" in refused.stderr
    assert FILE.read_text() == "autoload = false\n"
    FILE.write_text("")
    assert run("plugins", "enable", "greeter").exit_code == 0  # it was on already
