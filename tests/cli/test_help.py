"""Help and completion: what the command line says of itself while one types."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from standards_mcp import cli

Complete = Callable[..., list[str]]


def commands(
    command: click.Command = cli.cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


COMMANDS = dict(commands())
each_command = pytest.mark.parametrize("name", COMMANDS)


def shown(command: click.Command, name: str) -> str:
    return command.get_help(click.Context(command, info_name=f"standards-mcp {name}".strip()))


@each_command
def test_every_command_and_every_option_has_help(name: str):
    command = COMMANDS[name]
    text = command.help or ""
    assert text
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name
        else:
            metavar = param.make_metavar(click.Context(command))
            for word in re.findall(r"\w+", metavar):
                assert re.search(rf"\b{word}\b", text), f"{word} is not described"


@each_command
def test_every_command_ends_its_help_with_examples_that_it_takes(name: str):
    command = COMMANDS[name]
    if isinstance(command, click.Group) and name:
        return
    epilog = command.epilog or ""
    lines = re.findall(r"^  standards-mcp (.+?)(?: > .*)?$", epilog, re.MULTILINE)
    assert lines
    for line in lines:
        words = iter(shlex.split(line))
        taken: click.Command = cli.cli
        path: list[str] = []
        while isinstance(taken, click.Group):
            word = next(words)
            if word in {"--config", "--profile", "--set"}:  # stand before the command, with a value
                next(words)
                continue
            path.append(word)
            taken = COMMANDS.get(" ".join(path)) or pytest.fail(f"no command {word!r}")
        taken.make_context(line, list(words)).close()


@each_command
def test_help_fits_80_columns(name: str):
    text = shown(COMMANDS[name], name)
    assert max(map(len, text.splitlines())) <= 80
    assert name or re.search(r"2 +bad usage, input or configuration", text)


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Complete:
    """Return a function that gives what bash would offer after the typed words."""

    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("_STANDARDS_MCP_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", shlex.join(["standards-mcp", *words[:-1]]) + " ")
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        if words[-1]:
            monkeypatch.setenv("COMP_WORDS", shlex.join(["standards-mcp", *words]))
        capfd.readouterr()
        with pytest.raises(SystemExit):
            cli.run([])
        out, err = capfd.readouterr()
        assert err == ""
        lines = out.split()
        assert all(line.startswith("plain,") for line in lines)
        return [line.removeprefix("plain,") for line in lines]

    return ask


@pytest.mark.usefixtures("starter_catalog")
def test_what_may_come_next_is_offered(complete: Complete):
    assert complete("se") == ["search", "serve", "servers"]
    assert complete("data", "ex") == ["export"]
    assert complete("search", "--gr") == ["--grade"]
    assert complete("install", "claude") == ["claude-desktop", "claude-code"]
    assert complete("call", "find") == ["find_relevant_standards"]
    sets = complete("data", "remove", "")
    assert len(sets) > 1
    assert complete("data", "export", "--set", sets[0]) == [sets[0]]


def test_a_broken_configuration_or_plugin_offers_less_and_prints_nothing(
    complete: Complete, install: Callable[..., Path]
):
    install("broken", "raise RuntimeError('at import')")
    assert "install" in complete("broken", "")
    assert complete("--set", "x", "ca") == ["call"]
    Path("standards-mcp.toml").write_text("bad = [")
    assert complete("call", "") == []
    assert "install" in complete("search", "")
    assert "install" in complete("ins")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_each_shell_is_valid(shell: str):
    program = shutil.which(shell)
    script = subprocess.run(
        [sys.executable, "-c", "from standards_mcp.cli import main; main()"],
        env={**os.environ, "_STANDARDS_MCP_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "standards-mcp" in script.stdout
    assert script.stderr == ""
    if program:
        check = [program, "-n" if shell != "fish" else "--no-execute"]
        assert subprocess.run(check, input=script.stdout, text=True, check=False).returncode == 0


GREETER = """
    from pathlib import Path
    import click
    from standards_mcp import Plugin, hookimpl

    Path("imported").touch()

    @click.command("greeter")
    def greeter():
        '''Greet everybody.'''
        click.echo("hello")

    class GreeterPlugin(Plugin):
        @hookimpl
        def register_commands(self):
            return [greeter]
"""


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command and returns what it prints, on either stream."""

    def said(*arguments: str, code: int = 0) -> str:
        capfd.readouterr()
        assert cli.run(arguments) == code
        out, err = capfd.readouterr()
        assert (out if code else err) == ""
        return out + err

    return said


def test_help_lists_the_commands_of_plugins_and_imports_a_plugin_once_to_know_them(
    install: Callable[..., Path], said: Callable[..., str]
):
    install("greeter", GREETER)
    install("quiet", "from standards_mcp import Plugin\nclass QuietPlugin(Plugin): ...")
    install("broken", "raise RuntimeError('at import')")
    assert said("--version").startswith("standards-mcp, version ")
    assert not Path("imported").exists()
    first = said("--help")
    assert Path("imported").exists()
    assert "  greeter    Greet everybody." in first
    assert "  search     Find the standards that fit the activity described by TEXT." in first
    assert "  lookup     Show the standards named by each ID: a code such as..." in first
    assert "quiet" not in first
    assert "broken" not in first
    Path("imported").unlink()
    assert said("--help") == first
    assert not Path("imported").exists()
    said("search", "--help")
    assert said("--help") == first
    Path("standards-mcp.toml").write_text("[plugins.greeter]\nenabled = false\n")
    assert "greeter" not in said("--help")
    Path("standards-mcp.toml").write_text("bad = [")
    assert "  tools " in said("--help")


def test_a_plugin_without_commands_or_that_is_not_installed_is_no_unknown_command(
    install: Callable[..., Path], said: Callable[..., str]
):
    install("quiet", "from standards_mcp import Plugin\nclass QuietPlugin(Plugin): ...")
    assert said("quiet", code=1) == "Error: plugin 'quiet' has no commands\n"
    told = said("memory", "try", "x", code=1)
    assert told.startswith("Error: standards-mcp-memory is not installed; run `")


@pytest.mark.parametrize("keys", ["isolate = true", 'python = "/opt/bin/python"'])
def test_a_command_of_an_isolated_plugin_is_refused_with_the_remedy(
    install: Callable[..., Path], said: Callable[..., str], keys: str
):
    install("greeter", GREETER)
    Path("standards-mcp.toml").write_text(f"[plugins.greeter]\n{keys}\n", encoding="utf-8")
    refusal = said("greeter", "Ada", code=1)
    reason = "plugin 'greeter' is isolated, so its commands cannot run; load it in the host"
    assert reason in refusal
    assert "take isolate and python out of [plugins.greeter]" in refusal
    once = "standards-mcp --set plugins.greeter.isolate=false greeter ..."
    assert (once in refusal) == ("python" not in keys)
    assert "greeter" not in said("--help")
    assert not Path("imported").exists()
    if "python" not in keys:
        told = said("--set", "plugins.greeter.isolate=false", "greeter", "--help")
        assert "Greet everybody." in told
    Path("standards-mcp.toml").write_text("", encoding="utf-8")
    assert "  greeter    Greet everybody." in said("--help")
