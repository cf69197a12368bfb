"""Plugins that do their worst, each beside two that are served all the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.peer import COMMAND, WAIT, Peer

from standards_mcp.cli import cli

Install = Callable[..., Path]
Start = Callable[..., Peer]

SOURCES = Path(__file__).parent / "hostile"
DOCS = Path(__file__).parents[2] / "docs" / "plugins" / "isolation.md"
SECRET = "hunter-4242"  # noqa: S105
CONFIG = """
catalog.local.model = "none"
plugins.lookup.enabled = false
plugins.search.enabled = false
"""
IMPATIENT = """
from standards_mcp.loading import lifecycle, quarantine
from standards_mcp.remote.isolated import plugin
quarantine.SLOW_SECONDS = lifecycle.START_TIMEOUT = 1
plugin.START_TIMEOUT = 8
from standards_mcp.cli import main
main()
"""
GOOD = """
    from standards_mcp import Plugin, Tool, hookimpl

    class {type}Plugin(Plugin):
        @hookimpl
        def register_tools(self):
            return [Tool(name="{name}", description="Answer.", function=lambda: "{name} answers")]
"""
NEIGHBOURS = ("alpha", "zulu")


@dataclass(frozen=True)
class Attack:
    """What a plugin does, and what that comes to in the host's process.

    Attributes:
        does: As the documentation says it, and so the next.
        costs: What it costs.
        isolated: What it costs where it is isolated.
        reason: Why it failed, as far as ``plugins list`` says; empty for one that is started.
        calls: Its tools, with the arguments to call them with and a part of the answer.
        code: How the process ends.
    """

    name: str
    does: str
    costs: str
    isolated: str
    reason: str = ""
    calls: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    code: int = 0


CRASHED = "failed with an internal error"
ATTACKS = [
    Attack(
        "raises",
        "raises, also what cannot be printed",
        "its call; its wrapper is passed by",
        "its call",
        calls={"explode": ({}, CRASHED)},
    ),
    Attack(
        "prints",
        "prints, in every way and at any time",
        "nothing: it goes to stderr",
        "nothing: it goes to the log",
        calls={"shout": ({}, "done")},
    ),
    Attack(
        "stalls",
        "has a lifespan that hangs and cannot be cancelled",
        "20 s of the start, 2 s of the end, the plugin",
        "the plugin; the first list of tools waits for 20 s, once",
        "its lifespan did not start within 1 seconds",
        code=1,
    ),
    Attack(
        "blocks",
        "blocks the event loop in a call",
        "everybody waits for as long",
        "its calls; a process that no longer answers is ended and started again",
        calls={"block": ({"seconds": 0.2}, "done")},
    ),
    Attack(
        "leaks",
        "keeps memory at every call",
        "the memory, until the server ends",
        "its call, at its limit of memory (Linux only)",
        calls={"leak": ({"megabytes": 10}, "10")},
    ),
    Attack(
        "closes",
        "closes stdout and its file descriptor",
        "nothing: the protocol and the log have their own",
        "nothing",
        calls={"close": ({}, "done")},
    ),
    Attack(
        "patches",
        "replaces and deletes builtins at import",
        "the plugin; they are put back",
        "the plugin",
        "it changes builtins that all code uses: isinstance, len, next, print, sorted",
    ),
    Attack(
        "bloats",
        "has a schema of 20 MB",
        "the plugin, and what making and measuring the schema takes",
        "the plugin",
        "tool 'bloat': its schema is larger than 32 KiB",
    ),
    Attack(
        "recurses",
        "has a schema that doubles with each of 40 references",
        "the plugin",
        "the plugin",
        "tool 'recurse': its schema is larger than 32 KiB",
    ),
    Attack(
        "swarms",
        "registers 10,000 tools",
        "the plugin, and about a second of the start: the 1,001st is refused",
        "the plugin",
        "it declares more than 1000 tools",
    ),
    Attack(
        "spoofs",
        "names a tool with a letter that looks like another",
        "the plugin",
        "the plugin",
        "'\u0430lpha' is not a valid tool name",
    ),
    Attack(
        "blurts",
        "tells its secret in errors, in the log and at its end",
        "nothing: it is masked",
        "nothing: it is masked",
        calls={"blurt": ({}, "the key is ***"), "crash": ({}, CRASHED)},
    ),
    Attack(
        "lies",
        "says that it fits this version, and does not",
        "the plugin",
        "the plugin",
        "ImportError: cannot import name 'TimeMachine'",
    ),
]


@pytest.fixture
def start(install: Install) -> Generator[Start]:
    """Install two good plugins; return a function that starts the program, which is impatient."""
    for name in NEIGHBOURS:
        install(name, GOOD.format(name=name, type=name.capitalize()))
    Path("standards-mcp.toml").write_text(CONFIG, encoding="utf-8")
    peers: list[Peer] = []

    def begin(*arguments: str) -> Peer:
        peers.append(Peer(*arguments, command=[sys.executable, "-c", IMPATIENT]))
        return peers[-1]

    yield begin
    for peer in peers:
        peer.kill()


def attack_with(install: Install, name: str) -> Path:
    if name == "blurts":
        Path("standards-mcp.toml").write_text(f'{CONFIG}plugins.blurts.key = "{SECRET}"', "utf-8")
    return install(name, (SOURCES / f"{name}.py").read_text("utf-8"))


def text_of(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


def listed(name: str) -> dict[str, Any]:
    """Return what ``plugins list``, which imports no plugin, says of one."""
    done = CliRunner().invoke(cli, ["plugins", "list", "--json"])
    assert done.exit_code == 0, done.output
    return next(item for item in json.loads(done.stdout) if item["name"] == name)


def check_neighbours(peer: Peer) -> None:
    peer.initialize()
    assert set(NEIGHBOURS) <= set(peer.tool_names())
    for number, name in enumerate(NEIGHBOURS, 1):
        peer.call(number, name)
    answers = peer.answers(len(NEIGHBOURS))
    assert [text_of(answers[n]) for n in sorted(answers)] == [f"{n} answers" for n in NEIGHBOURS]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_plugin_silences_another(install: Install, start: Start, attack: Attack):
    attack_with(install, attack.name)
    peer = start()
    check_neighbours(peer)
    assert set(peer.tool_names()) == {*NEIGHBOURS, *attack.calls}
    for number, (tool, (arguments, expected)) in enumerate(attack.calls.items(), 10):
        peer.call(number, tool, **arguments)
        peer.call(number + 100, "zulu")
        answers = peer.answers(2)
        assert expected in text_of(answers[number])
        assert text_of(answers[number + 100]) == "zulu answers"
    assert peer.end() == attack.code
    assert SECRET not in peer.log()
    assert "tool call" in peer.log()
    found = listed(attack.name)
    assert found["status"] == ("failed" if attack.reason else "started")
    assert found["reason"].startswith(attack.reason)


UNKNOWN = "its tools are not known: "
ISOLATED_REASONS = {"exits": UNKNOWN, "hangs": UNKNOWN}
IMPATIENT_PYTHON = f"""#!/bin/sh
exec {sys.executable} -c "
from standards_mcp.loading import lifecycle
from standards_mcp.server import worker
lifecycle.START_TIMEOUT = 1
worker.main()
"
"""
LEAK = {"leak": ({"megabytes": 4000}, CRASHED)}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize("name", [*(attack.name for attack in ATTACKS), "exits", "hangs"])
def test_an_isolated_plugin_costs_its_own_calls_only(install: Install, start: Start, name: str):
    attack = next((each for each in ATTACKS if each.name == name), Attack(name, "", "", ""))
    attack_with(install, name)
    python = Path("impatient-python")
    python.write_text(IMPATIENT_PYTHON, encoding="utf-8")
    python.chmod(0o755)
    with Path("standards-mcp.toml").open("a", encoding="utf-8") as config:
        config.write(f"\nplugins.{name}.isolate = true\nplugins.{name}.memory = '2GB'\n")
        config.write(f"plugins.{name}.python = '{python.absolute()}'\n")
    peer = start()
    check_neighbours(peer)
    calls = LEAK if name == "leaks" else attack.calls
    assert set(peer.tool_names()) == {*NEIGHBOURS, *calls}
    for number, (tool, (arguments, expected)) in enumerate(calls.items(), 10):
        peer.call(number, tool, **arguments)
        peer.call(number + 100, "zulu")
        answers = peer.answers(2)
        assert name != "blocks" or list(answers) == [number + 100, number], "zulu did not wait"
        assert expected in text_of(answers[number])
        assert text_of(answers[number + 100]) == "zulu answers"
    assert peer.end() == 0
    assert SECRET not in peer.log()
    found, reason = listed(name), ISOLATED_REASONS.get(name, attack.reason)
    assert found["reason"].startswith(reason)
    assert found["status"] == ("failed" if reason else "started")


def die_twice(start: Start) -> None:
    for _ in range(2):
        assert start().process.wait(WAIT) == 0


@pytest.mark.measured
@pytest.mark.parametrize("name", ["exits", "hangs"])
def test_a_plugin_that_hangs_or_exits_twice_is_left_out_of_the_next_start(
    install: Install, start: Start, name: str
):
    attack_with(install, name)
    if name == "hangs":
        for _ in range(2):
            peer = start()
            peer.wait_for_log("plugin 'hangs' is still loading")
            peer.kill()
    else:
        die_twice(start)
    for _ in range(2):
        peer = start()
        check_neighbours(peer)
        assert peer.end() == 0
    found = listed(name)
    assert found["status"] == "failed"
    assert "`standards-mcp plugins check` tries it again" in found["reason"]


def test_a_plugin_that_is_left_out_is_back_once_a_check_has_tried_it(
    install: Install, start: Start
):
    module = attack_with(install, "exits")
    die_twice(start)
    check = [*COMMAND, "plugins", "check"]
    subprocess.run(check, capture_output=True, check=True, timeout=WAIT)
    assert listed("exits")["status"] == "failed", "it ended the check, too"

    module.write_text(GOOD.format(name="mended", type="Exits").replace("\n    ", "\n"), "utf-8")
    subprocess.run(check, capture_output=True, check=True, timeout=WAIT)
    peer = start()
    check_neighbours(peer)
    assert "mended" in peer.tool_names()
    assert peer.end() == 0


def test_another_version_of_a_plugin_is_tried(install: Install, start: Start, tmp_path: Path):
    module = attack_with(install, "exits")
    die_twice(start)
    metadata = tmp_path / "site" / "standards_mcp_exits-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text("utf-8").replace("1.0", "1.1"), encoding="utf-8")
    module.write_text(GOOD.format(name="mended", type="Exits").replace("\n    ", "\n"), "utf-8")
    peer = start()
    check_neighbours(peer)
    assert "mended" in peer.tool_names()


def test_a_required_plugin_is_tried_at_every_start(install: Install, start: Start):
    attack_with(install, "exits")
    for _ in range(2):
        peer = start("--set", "plugins.exits.required=true")
        assert peer.process.wait(WAIT) == 0
        assert "failed" not in peer.log()


@pytest.mark.skipif(sys.platform == "win32", reason="a process is ended there without a signal")
@pytest.mark.usefixtures("start")
def test_a_plugin_is_not_blamed_when_the_client_ends_the_server_at_once(
    install: Install, tmp_path: Path
):
    ready = tmp_path / "ready"
    source = f"""
        import pathlib, time
        pathlib.Path({str(ready)!r}).touch()
        time.sleep(60)
    """
    install("slow", source)
    peer = Peer()
    peer.wait_at_work(ready.exists)
    peer.process.send_signal(signal.SIGTERM)
    assert peer.process.wait(WAIT) == -signal.SIGTERM
    peer.kill()
    assert listed("slow")["status"] == "discovered"


SLEEPS = """
    import pathlib, time

    from standards_mcp import Plugin, hookimpl

    tries = pathlib.Path({folder!r}, "tries")

    def wait():
        with tries.open("a") as file:
            file.write("x")
        while tries.stat().st_size in {kills}:
            time.sleep(0.01)

    class SlowPlugin(Plugin):
        {hook}
"""
AT_IMPORT = "wait()"
AT_START = """@hookimpl
        def lifespan(self):
            wait()
            return __import__("contextlib").nullcontext()"""


@pytest.mark.parametrize("hook", [AT_IMPORT, AT_START], ids=["import", "lifespan"])
@pytest.mark.parametrize(("kills", "status"), [((1, 3), "started"), ((1, 2), "failed")], ids=str)
@pytest.mark.usefixtures("start")
def test_a_plugin_is_blamed_for_the_second_killed_start_in_a_row(
    install: Install, tmp_path: Path, hook: str, kills: tuple[int, ...], status: str
):
    install("slow", SLEEPS.format(folder=str(tmp_path), kills=kills, hook=hook))
    tries = tmp_path / "tries"
    for number in range(1, max(kills) + 2):
        peer = Peer()
        if number in kills:
            peer.wait_at_work(lambda: tries.exists() and tries.stat().st_size >= number)  # noqa: B023
        else:
            check_neighbours(peer)
            assert peer.end() == 0
        peer.kill()
    assert listed("slow")["status"] == status


def test_a_hanging_process_that_still_runs_does_not_hang_the_next(install: Install, start: Start):
    attack_with(install, "hangs")
    first = start()
    first.wait_for_log("plugin 'hangs' is still loading")
    second = start()
    check_neighbours(second)
    assert second.end() == 0
    assert first.process.poll() is None


def test_the_documentation_tells_what_each_costs():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCS.read_text("utf-8").partition("## What each mischief costs")[2].splitlines()
        if line.startswith("| ")
    ]
    told = {does: costs for does, *costs in rows[1:]}
    assert {each.does: [each.costs, each.isolated] for each in ATTACKS}.items() <= told.items()
