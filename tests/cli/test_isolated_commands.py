"""Commands of plugins that run in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.processes

Install = Callable[..., Path]

PLUGIN = """
    import sys
    import click
    from pydantic import SecretStr
    from standards_mcp import Plugin, PluginSettings, hookimpl, tool

    class AcmeSettings(PluginSettings):
        key: SecretStr = SecretStr("hunter-4242")
        greeting: str = "hello"

    @click.command()
    @click.argument("name")
    @click.option("--loud", is_flag=True, help="Shout.")
    @click.pass_obj
    def greet(call, name, loud):
        "Greet NAME."
        text = call("greet", {"name": name}).text
        click.echo(text.upper() if loud else text)

    @click.command()
    def read():
        click.echo(f"read {sys.stdin.read()!r}")

    @click.command()
    @click.argument("how")
    @click.pass_obj
    def fail(call, how):
        if how == "tool":
            call("search", {})
        if how == "exit":
            raise SystemExit(7)
        raise RuntimeError("no luck with hunter-4242")

    class AcmePlugin(Plugin[AcmeSettings]):
        settings_type = AcmeSettings

        @tool
        def greet(self, name: str) -> str:
            "Greet somebody."
            return f"{self.settings.greeting} {name}"

        @hookimpl
        def register_commands(self):
            return [greet, read, fail]
"""
WEB = """
    import os
    from typing import Annotated
    import click
    from standards_mcp import Plugin, PluginSettings, Variable, hookimpl

    class WebSettings(PluginSettings):
        key: Annotated[str, Variable("WEB_KEY")]

    class WebPlugin(Plugin[WebSettings]):
        settings_type = WebSettings

        @hookimpl
        def register_commands(self):
            @click.command()
            def look():
                click.echo(self.settings.key[::-1])
                names = ("OTHER_KEY", "STANDARDS_MCP_SERVER__STATE_KEY")
                click.echo(" ".join(str(os.environ.get(name)) for name in names))

            return [look]
"""
NONE = """
    from standards_mcp import Plugin

    class NonePlugin(Plugin):
        pass
"""


@pytest.fixture
def run(install: Install) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Install two isolated plugins; return a function that runs a command line."""
    install("acme", PLUGIN)
    install("none", NONE)
    text = '[plugins.acme]\nisolate = true\ngreeting = "hi"\n[plugins.none]\nisolate = true\n'
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "standards_mcp", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    return run


def test_a_command_calls_the_tools_of_its_plugin_with_its_settings(run: Any):
    ran = run("acme", "greet", "--loud", "ada")
    assert (ran.returncode, ran.stdout) == (0, "HI ADA\n"), ran.stderr


def test_it_reads_what_the_user_pipes_in(run: Any):
    assert run("acme", "read", input="a text").stdout == "read 'a text'\n"


def test_its_help_is_its_own(run: Any):
    ran = run("acme", "greet", "--help")
    assert "Usage: standards-mcp acme greet" in ran.stdout
    assert "Shout." in ran.stdout


def test_its_failures_are_one_line_without_secrets(run: Any):
    ran = run("acme", "fail", "badly")
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == (
        "standards-mcp: acme failed: RuntimeError: no luck with ***; for more, put -vv before the "
        "command"
    )
    assert "Traceback" in run("-vv", "acme", "fail", "badly").stderr
    assert run("acme", "fail", "exit").returncode == 7
    ran = run("acme", "fail", "tool")
    assert ran.returncode == 2
    assert "Unknown tool: search. A command of an isolated plugin can call the tools" in ran.stderr
    assert run("acme", "nothing").returncode == 2


def test_a_plugin_without_commands_says_so(run: Any):
    ran = run("none", "x")
    assert ran.returncode == 1
    assert "standards-mcp: plugin 'none': it has no commands" in ran.stderr


def test_an_interpreter_that_is_not_there_is_named(run: Any):
    ran = run("--set", "plugins.acme.python=/nowhere/python", "acme", "greet", "ada")
    assert ran.returncode == 1
    assert "[plugins.acme] python: /nowhere/python cannot be run" in ran.stderr


def test_a_command_gets_the_variables_that_its_plugin_declares_and_no_others(
    run: Any, install: Install, monkeypatch: pytest.MonkeyPatch
):
    install("web", WEB)
    monkeypatch.setenv("WEB_KEY", "declared-4242")
    monkeypatch.setenv("OTHER_KEY", "hunter-4242")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__STATE_KEY", "x" * 40)
    ran = run("--set", "plugins.web.isolate=true", "web", "look")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "2424-deralced\nNone None\n"
