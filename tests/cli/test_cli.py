"""The commands, as people type them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.waiting import WAIT

from standards_mcp import cli
from standards_mcp.config.timing import DEFAULT_TIMING, Timing

PLUGIN = """
    import click
    from standards_mcp import Health, Plugin, PluginSettings, Tool, hookimpl

    class GreetSettings(PluginSettings):
        greeting: str = "hello"

    @click.command()
    @click.argument("name")
    @click.pass_obj
    def wave(call, name):
        click.echo("wave " + call("greet", {"name": name}).text)

    @click.command()
    def bow():
        click.echo("bow")

    class GreetPlugin(Plugin):
        settings_type = GreetSettings

        @hookimpl
        def register_tools(self):
            def greet(name: str) -> str:
                print("printed in a call")
                return f"{self.settings.greeting} {name}"

            def rename(name: str) -> dict:
                return {"success": False, "results": [], "error_type": "no_results"}

            return [
                Tool(name="greet", description="Greet", function=greet, read_only=True),
                Tool(name="people.rename", description="Rename", function=rename),
            ]

        @hookimpl
        def register_commands(self):
            return [wave, bow]

        @hookimpl
        async def check_health(self):
            return Health(status="ok", message="in good spirits")
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(starter_catalog: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command in this process."""
    del starter_catalog  # only to be the configured one

    def invoke(*arguments: str, timing: Timing = DEFAULT_TIMING) -> Outcome:
        capfd.readouterr()
        code = cli.run(arguments, timing)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return invoke


@pytest.fixture
def greeter(install: Callable[..., Path]) -> None:
    install("greet", PLUGIN)


OWNER = """
    from contextlib import asynccontextmanager
    from pathlib import Path
    import click
    from standards_mcp import Plugin, hookimpl, tool

    @click.command()
    @click.pass_obj
    def {name}(call):
        for text in ("one", "two"):
            click.echo(call("{name}_note", {{"text": text}}).text)
        click.echo(call("{other}_note", {{"text": "three"}}).text)

    class {type}Plugin(Plugin):
        started = 0

        @hookimpl
        @asynccontextmanager
        async def lifespan(self):
            self.started += 1
            with Path("lives").open("a") as file:
                print("{name} starts", file=file)
            yield
            with Path("lives").open("a") as file:
                print("{name} stops", file=file)

        @tool(name="{name}_note")
        def note(self, text: str) -> str:
            "Note a text."
            assert self.started == 1
            return "noted " + text

        @hookimpl
        def register_commands(self):
            return [{name}]
"""


def test_a_command_starts_the_plugins_that_it_needs_once(run: Run, install: Callable[..., Path]):
    for name, other in (("alpha", "beta"), ("beta", "gamma"), ("gamma", "alpha")):
        install(name, OWNER.format(name=name, other=other, type=name.capitalize()))
    outcome = run("alpha")
    assert outcome.out == "noted one\nnoted two\nnoted three\n", outcome.err
    lives = Path("lives").read_text("utf-8").splitlines()
    assert lives == ["alpha starts", "beta starts", "beta stops", "alpha stops"]


def test_a_call_prints_the_answer_and_the_note_that_it_was_cut(run: Run):
    cut = ("--set", "tools.max_output_tokens=400", "call", "find_relevant_standards")
    command = (*cut, "--args", '{"activity": "telling time"}')
    outcome = run(*command)
    (line,) = outcome.err.splitlines()
    note = line.removeprefix("note: ")
    assert note.startswith("results: the first ")
    assert f". {note}" in outcome.data["message"]
    whole = run(*command, "--json").data
    assert whole["structured"] == json.loads(whole["text"]) == outcome.data
    assert (whole["notes"], whole["is_error"]) == ([note], False)


@pytest.mark.usefixtures("greeter")
def test_tools_lists_each_tool_and_why_it_is_not_served(run: Run):
    listed = run("--set", "tools.read_only=true", "tools", "--json")
    tools = {tool["name"]: tool for tool in listed.data}
    assert tools["greet"]["served"]
    assert tools["people_rename"]["declared_name"] == "people.rename"
    assert tools["people_rename"]["reason"] == "it is not read-only, and [tools] read_only = true"
    shown = run("--set", "tools.read_only=true", "tools")
    assert "people_rename" in shown.out
    assert "not served: it is not read-only" in shown.out


@pytest.mark.usefixtures("greeter")
def test_quotes_in_a_key_hold_dots(run: Run):
    listed = run("--set", 'tools.overrides."people.rename".name=rename', "tools", "--json")
    assert "rename" in [tool["name"] for tool in listed.data]
    odd = run("--set", "[a]\n[b]\nc=1", "tools")
    assert odd.err.startswith("standards-mcp: command line: ")


def test_tools_lists_plugins_that_are_not_loaded(run: Run, install: Callable[..., Path]):
    install("broken", "raise RuntimeError('not today')")
    options = ["--set", "plugins.search.enabled=false", "tools"]
    listed = {item["plugin"]: item for item in run(*options, "--json").data}
    assert listed["lookup"]["served"]
    reason = "plugin 'broken' failed: RuntimeError: not today"
    assert (listed["broken"]["name"], listed["broken"]["served"]) == (None, False)
    assert listed["broken"]["reason"] == reason
    disabled = "plugin 'search' is disabled: [plugins.search] enabled = false"
    assert listed["search"]["reason"] == disabled
    assert f"not served: {reason}" in " ".join(run(*options).out.split())


def test_a_pattern_without_effect_is_reported_with_the_nearest_tool(run: Run):
    disable = "tools.disable=['find_relevent*', 'get_*']"
    outcome = run("--set", disable, "tools")
    warning = "command line: [tools] disable: 'find_relevent*' matches no tool; did you mean"
    assert outcome.code == 0
    assert outcome.err == f"warning: {warning} 'find_relevant_standards'?\n"
    strict = run("--set", disable, "--set", "strict=true", "tools")
    assert (strict.code, strict.out) == (2, "")
    assert f"standards-mcp: {warning}" in strict.err
    assert run("--set", "tools.enable=['*', 'get.*', 'get_*']", "tools").err.count("warning") == 1


@pytest.mark.usefixtures("greeter")
def test_call_prints_the_answer_and_exits_with_its_success(run: Run):
    assert run("call", "greet", "--args", '{"name": "Ada"}').out == "hello Ada\n"
    assert run("call", "people.rename", "--args", '{"name": "Ada"}').code == 1
    wrong = run("call", "greet")
    assert wrong.code == 2
    assert wrong.data["message"] == "name: this argument is required"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("call greeet", "Unknown tool: greeet; did you mean 'greet'?"),
        ("call greet --args {", "--args is not valid JSON"),
        ("lookup", "Missing argument 'ID...'"),
        ("nonsense", "No such command 'nonsense'"),
        ("toosl", "No such command 'toosl'; did you mean 'tools'?"),
        ("--set nonsense tools", "write KEY=VALUE"),
        ("--set tools=hush --set tools.timeout=1 tools", "tools: input should be a table"),
        ("--set tools.timeot=1 tools", "command line: [tools] timeot: unknown key; did you mean"),
        ("--config nowhere.toml tools", "nowhere.toml: no such file"),
        ("--set plugins.gret.enabled=true tools", "did you mean 'greet'?"),
    ],
)
@pytest.mark.usefixtures("greeter")
def test_bad_usage_is_one_message_and_exit_code_2(run: Run, arguments: str, message: str):
    outcome = run(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err


BREAKING = """
    import click
    from standards_mcp import Plugin, hookimpl

    @click.command()
    def fall():
        raise LookupError("no ground")

    @click.command()
    def wait():
        click.echo("waiting")
        click.get_text_stream("stdout").flush()
        import time
        while True:  # a signal just before a sleep does not end it
            time.sleep(0.1)

    class StepPlugin(Plugin):
        @hookimpl
        def register_commands(self):
            return [fall, wait]
"""


def test_a_command_that_raises_prints_one_line_and_a_traceback_on_request(
    run: Run, install: Callable[..., Path]
):
    install("step", BREAKING)
    outcome = run("step", "fall")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "standards-mcp: step failed: LookupError: no ground; for more, put -vv before the command\n"
    )
    assert "Traceback" not in run("-v", "step", "fall").err
    verbose = run("-vv", "step", "fall")
    assert verbose.code == 1
    assert "Traceback" in verbose.err
    assert verbose.err.splitlines()[-1].startswith("standards-mcp: step failed: LookupError")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_ends_a_command_without_a_traceback(run: Run, install: Callable[..., Path]):
    del run
    install("step", BREAKING)
    command = [sys.executable, "-m", "standards_mcp", "step", "wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_people_get_errors_as_plain_lines(run: Run, install: Callable[..., Path]):
    install("broken", "raise RuntimeError('not today')")
    outcome = run("lookup", "MP1")
    assert outcome.err == "error: plugin 'broken' failed: RuntimeError: not today\n"
    assert "info: tool call (tool=" in run("-v", "lookup", "MP1").err


@pytest.mark.usefixtures("greeter")
def test_a_plugin_adds_commands_below_its_name(run: Run):
    assert run("greet", "wave", "Ada").out == "wave hello Ada\n"
    assert run("greet", "bow").out == "bow\n"
    assert "  greet      Commands: bow, wave." in run("--help").out


@pytest.mark.slow
@pytest.mark.parametrize("isolate", ["false", "true"])
@pytest.mark.parametrize("command", ["tools", "plugins check", "plugins info broken"])
def test_the_reason_of_a_failed_plugin_is_printed_once(
    run: Run, install: Callable[..., Path], isolate: str, command: str
):
    install("broken", "raise RuntimeError('not today')")
    outcome = run("--set", f"plugins.broken.isolate={isolate}", *command.split())
    told = " ".join(f"{outcome.out} {outcome.err}".split())
    assert told.count("RuntimeError: not today") == 1


def test_a_command_of_a_plugin_that_failed_says_so(run: Run, install: Callable[..., Path]):
    install("broken", "raise RuntimeError('not today')")
    outcome = run("broken")
    assert outcome.code == 1
    assert outcome.err.count("RuntimeError: not today") == 1
    assert "plugin 'broken' failed, so it has no commands" in outcome.err


@pytest.mark.usefixtures("greeter")
def test_listing_plugins_does_not_import_them(run: Run):
    outcome = run("plugins", "list", "--json")
    assert "printed at import" not in outcome.err
    states = {plugin["name"]: plugin["status"] for plugin in outcome.data}
    assert states == dict.fromkeys(("catalog", "greet", "lookup", "search"), "discovered")
    assert "not loaded yet" in run("plugins", "list").out


@pytest.mark.usefixtures("greeter")
def test_checking_plugins_starts_them_and_asks_for_their_health(run: Run):
    outcome = run("plugins", "check", "--json")
    plugins = {plugin["name"]: plugin for plugin in outcome.data}
    assert outcome.code == 0
    assert plugins["greet"]["status"] == "started"
    health = {"status": "ok", "message": "in good spirits", "facts": {}}
    assert plugins["greet"]["health"] == health
    assert plugins["lookup"]["health"] is None
    assert "in good spirits" in run("plugins", "check").out
    assert {plugin["status"] for plugin in run("plugins", "list", "--json").data} == {"started"}


HEALTH = """
    import asyncio, pathlib
    from support.waiting import let_time_pass
    from standards_mcp import Health, Plugin, hookimpl

    mark, done = pathlib.Path("mark"), pathlib.Path("done")

    async def until(path):
        while not path.exists():
            await asyncio.sleep(0.01)

    class {class_name}(Plugin):
        @hookimpl
        async def check_health(self):
            {check}
            return Health(status="ok")
"""


def test_health_checks_run_side_by_side_and_one_that_hangs_fails(
    run: Run, install: Callable[..., Path]
):
    checks = {
        # Each of the first two ends only while the other runs.
        "asks": ("await until(mark); done.touch()", ""),
        "gives": ("mark.touch(); await until(done)", ""),
        "hangs": ("await until(done); let_time_pass(); await asyncio.Event().wait()", "not answer"),
        "exits": ("raise SystemExit(3)", "it called sys.exit(3)"),
        "raises": ("raise LookupError('none')", "LookupError: none"),
        "stops": ("raise asyncio.CancelledError", "it was cancelled"),
    }
    for name, (check, _) in checks.items():
        install(name, HEALTH.format(class_name=f"{name.capitalize()}Plugin", check=check))
    quick = ("--set", "plugins.search.enabled=false")  # its encoder may take as long
    outcome = run(*quick, "plugins", "check", "--json", timing=Timing(health=WAIT))
    assert outcome.code == 1
    healths = {item["name"]: item["health"] for item in outcome.data}
    for name, (_, told) in checks.items():
        assert healths[name]["status"] == ("failed" if told else "ok")
        assert told in (healths[name]["message"] or "")


TIRED = """
    from contextlib import asynccontextmanager
    from standards_mcp import Plugin, hookimpl

    class TiredPlugin(Plugin):
        @hookimpl
        @asynccontextmanager
        async def lifespan(self):
            raise RuntimeError("not before noon")
            yield
"""


def test_a_failure_to_start_is_still_listed_after_commands_that_start_nothing(
    run: Run, install: Callable[..., Path]
):
    install("tired", TIRED)
    assert run("plugins", "check").code == 1
    for command in (["tools"], ["--help"], ["plugins", "list"]):
        assert run(*command).code == 0
        assert "its lifespan failed: RuntimeError: not before noon" in run("plugins", "list").out
