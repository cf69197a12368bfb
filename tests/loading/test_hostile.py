"""Plugins that do their worst, each beside two that are served all the same."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.hostile import PLUGINS, source_of
from support.hosts import Install
from support.peer import COMMAND, WAIT, Peer
from support.waiting import wait_until

from standards_mcp.cli import cli

pytestmark = pytest.mark.processes

Start = Callable[..., Peer]

DOCS = Path(__file__).parents[2] / "docs" / "plugins" / "isolation.md"
SECRET = "hunter-4242"  # noqa: S105
CONFIG = """
plugins.catalog.local.model = "none"
plugins.lookup.enabled = false
plugins.search.enabled = false
"""
TIMED = """
import os
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as `__main__` does
from standards_mcp.cli import main
from standards_mcp.config.timing import Timing
main(Timing(**{timing}))
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
    """What a plugin comes to.

    Attributes:
        reason: How the reason begins for which it fails; empty for one that is started.
        answers: Its tools, and a part of what each answers.
        alone: It costs others something, or holds the end of the process.
    """

    name: str
    reason: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False


CRASHED = "failed with an internal error"
ROWS = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text("utf-8"))["row"]


def attack_of(name: str, keys: dict[str, Any]) -> Attack:
    answers = {tool: text or CRASHED for tool, text in keys.get("answers", {}).items()}
    return Attack(name, re.escape(keys.get("reason", "")), answers, keys.get("alone", False))


HERE = [attack_of(*item) for row in ROWS for item in row.get("plugins", {}).items()]
ISOLATED = [
    attack_of(name, keys | keys["isolated"])
    for row in ROWS
    for name, keys in row.get("plugins", {}).items()
    if "isolated" in keys
]
BY_NAME = {attack.name: attack for attack in HERE}


@pytest.fixture
def start(install: Install) -> Generator[Start]:
    """Install two good plugins; return a function that starts the program, which is impatient.

    A patient one gives every plugin all the time that a busy machine may take to start it.
    """
    for name in NEIGHBOURS:
        install(name, GOOD.format(name=name, type=name.capitalize()))
    Path("standards-mcp.toml").write_text(CONFIG, encoding="utf-8")
    peers: list[Peer] = []

    def begin(*arguments: str, patient: bool = False, **seconds: float) -> Peer:
        timing = {"start": WAIT, "hung": WAIT, "end": WAIT} if patient else {"start": 1, "hung": 1}
        timing |= {"patience": 60, **seconds}
        command = [sys.executable, "-c", TIMED.format(timing=timing)]
        peers.append(Peer(*arguments, command=command))
        return peers[-1]

    yield begin
    for peer in peers:
        peer.kill()


def attack_with(install: Install, name: str) -> Path:
    if name == "blurts":
        configure(f'plugins.blurts.key = "{SECRET}"')
    requires = ["standards-mcp>=99"] if name == "outgrows" else ()
    return install(name, source_of(name), requires=requires)


def configure(line: str) -> None:
    with Path("standards-mcp.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


def text_of(answer: dict[str, Any]) -> str:
    return answer["result"]["content"][0]["text"]


def listed() -> dict[str, dict[str, Any]]:
    """Return what ``plugins list``, which imports no plugin, says of each."""
    done = CliRunner().invoke(cli, ["plugins", "list", "--json"])
    assert done.exit_code == 0, done.output
    return {item["name"]: item for item in json.loads(done.stdout)}


def check_neighbours(peer: Peer) -> None:
    peer.initialize()
    assert set(NEIGHBOURS) <= set(peer.tool_names())
    for number, name in enumerate(NEIGHBOURS, 1):
        peer.call(number, name)
    answers = peer.answers(len(NEIGHBOURS))
    assert [text_of(answers[n]) for n in sorted(answers)] == [f"{n} answers" for n in NEIGHBOURS]


def check_attacks(peer: Peer, attacks: Sequence[Attack]) -> None:
    """Call all that plugins have, and see after each call that their neighbour is served."""
    check_neighbours(peer)
    expected_tools = {*NEIGHBOURS, *(tool for a in attacks for tool in a.answers)}
    wait_until(lambda: expected_tools <= set(peer.tool_names()), peer.log)
    assert set(peer.tool_names()) == expected_tools
    number = itertools.count(10)
    for method, params in contents_of(peer, number):
        answer_beside_zulu(peer, number, method, params)
    for attack in attacks:
        for tool, expected in attack.answers.items():
            params = {"name": tool, "arguments": {}, "_meta": {"progressToken": 1}}
            answer = answer_beside_zulu(peer, number, "tools/call", params)
            assert expected in text_of(answer), (attack.name, answer)


def contents_of(peer: Peer, number: Iterator[int]) -> list[tuple[str, dict[str, Any]]]:
    """Return requests that get each prompt and resource, and complete each argument."""
    found: list[tuple[str, dict[str, Any]]] = []
    for prompt in ask(peer, number, "prompts/list")["prompts"]:
        found.append(("prompts/get", {"name": prompt["name"]}))
        found += completions({"type": "ref/prompt", "name": prompt["name"]}, prompt)
    for item in ask(peer, number, "resources/list")["resources"]:
        found.append(("resources/read", {"uri": item["uri"]}))
    for item in ask(peer, number, "resources/templates/list")["resourceTemplates"]:
        uri = item["uriTemplate"]
        found.append(("resources/read", {"uri": uri.replace("{word}", "x")}))
        found += completions(
            {"type": "ref/resource", "uri": uri}, {"arguments": [{"name": "word"}]}
        )
    return found


def completions(ref: dict[str, Any], item: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("completion/complete", {"ref": ref, "argument": {"name": each["name"], "value": ""}})
        for each in item.get("arguments", ())
    ]


def ask(peer: Peer, number: Iterator[int], method: str) -> dict[str, Any]:
    peer.send(method, {}, sent := next(number))
    return peer.answers(1)[sent]["result"]


def answer_beside_zulu(
    peer: Peer, number: Iterator[int], method: str, params: dict[str, Any]
) -> dict[str, Any]:
    sent, beside = next(number), next(number)
    peer.send(method, params, sent)
    peer.call(beside, "zulu")
    answers = peer.answers(2)
    assert text_of(answers[beside]) == "zulu answers"
    return answers[sent]


def check_outcomes(attacks: Sequence[Attack]) -> None:
    found = listed()
    for attack in attacks:
        each = found[attack.name]
        assert re.match(attack.reason, each["reason"]), each
        assert each["status"] == ("failed" if attack.reason else "started"), each


def test_plugins_that_do_their_worst_silence_nobody(install: Install, start: Start):
    attacks = [attack for attack in HERE if not attack.alone]
    for attack in attacks:
        attack_with(install, attack.name)
    peer = start()
    peer.wait_for_log("plugin 'swarms' failed")  # a busy machine takes long until then
    check_attacks(peer, attacks)
    assert peer.end() == 0
    assert SECRET not in peer.log()
    assert "tool call" in peer.log()
    check_outcomes(attacks)


def test_the_commands_of_plugins_cost_each_other_nothing(install: Install, start: Start):
    del start
    for name in ("commands", "interrupts", "meddles", "ends", "says"):
        attack_with(install, name)
    run = partial(subprocess.run, capture_output=True, timeout=WAIT, check=False)
    refused = run([*COMMAND, "commands"])
    assert refused.returncode == 1
    assert b"plugin 'commands' failed: KeyboardInterrupt" in refused.stderr
    checked = run([*COMMAND, "plugins", "check"])
    assert checked.returncode == 1
    assert b"KeyboardInterrupt" in checked.stdout


def test_a_plugin_that_stalls_its_start_silences_nobody(install: Install, start: Start):
    attack_with(install, "stalls")
    peer = start()
    check_attacks(peer, [])
    assert peer.end() == 1
    check_outcomes([BY_NAME["stalls"]])


@pytest.mark.parametrize(
    ("name", "tool", "why"),
    [
        ("cancels", "cancel", "all tasks of the server were cancelled, which only a plugin can do"),
        ("strays", "stray", "a task of a plugin ended the server; the log has its traceback"),
        ("halts", "halt", "Event loop stopped before Future completed"),
    ],
)
def test_a_server_whose_event_loop_a_plugin_ends_says_why(
    install: Install, start: Start, name: str, tool: str, why: str
):
    attack_with(install, name)
    peer = start()
    check_neighbours(peer)
    peer.call(10, tool)
    assert peer.process.wait(WAIT) == 1
    peer.wait_for_log(why)


def test_a_task_that_ends_the_server_when_it_starts_is_in_the_log(install: Install, start: Start):
    attack_with(install, "roams")
    peer = start()
    assert peer.process.wait(WAIT) == 1, "although the task exits with 0"
    peer.wait_for_log("a task of a plugin ended the server; the log has its traceback")
    assert "it called sys.exit(0)" in peer.log()
    assert "in leave" in peer.log()


@pytest.mark.smoke
def test_a_function_that_computes_for_ever_costs_its_call(install: Install, start: Start):
    attack_with(install, "spins")
    check_attacks(start(), [BY_NAME["spins"]])


def test_a_plugin_that_breaks_imports_ends_the_start_with_a_reason(install: Install, start: Start):
    attack_with(install, "impersonates")
    peer = start()
    assert peer.process.wait(WAIT) != 0
    assert "ImportError" in peer.log()


BATCHES = 4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_isolated_plugins_cost_their_own_calls_only(install: Install, start: Start, batch: int):
    attacks = ISOLATED[batch::BATCHES]
    for attack in attacks:
        attack_with(install, attack.name)
        isolate(attack.name)
    configure(f"tools.timeout = {WAIT}")
    peer = start(patient=True)
    check_attacks(peer, attacks)
    assert peer.end() == 0
    assert SECRET not in peer.log()
    check_outcomes(attacks)


def isolate(name: str) -> None:
    configure(f"plugins.{name}.isolate = true\nplugins.{name}.memory = '2GB'")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("exits", "its tools are not known: "),
        ("hangs", "its tools are not known: "),
        # A busy machine may not have started its process by then.
        ("stalls", f"its tools are not known: |{BY_NAME['stalls'].reason}"),
    ],
)
def test_an_isolated_plugin_that_does_not_start_costs_itself(
    install: Install, start: Start, name: str, reason: str
):
    attack_with(install, name)
    isolate(name)
    peer = start()
    check_attacks(peer, [])
    assert peer.end() == 0
    check_outcomes([Attack(name, reason)])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_an_isolated_plugin_has_its_own_memory_and_time(install: Install, start: Start):
    for name in ("leaks", "blocks"):
        attack_with(install, name)
        isolate(name)
    peer = start(patient=True)
    check_neighbours(peer)
    peer.call(10, "leak", megabytes=4000)
    assert CRASHED in text_of(peer.answers(1)[10])
    peer.call(11, "block", seconds=5)  # longer than any answer takes on a busy machine
    peer.call(12, "zulu")
    assert [*peer.answers(2)] == [12, 11], "zulu did not wait"


def die_once(start: Start) -> None:
    assert start().process.wait(WAIT) == 0


ENDS = """
    import os, contextlib
    from standards_mcp import Plugin, hookimpl

    class EndsPlugin(Plugin):
        def __init__(self, settings, context):
            super().__init__(settings, context)
            self.end("construction")

        def end(self, where):
            if where == {where!r}:
                os._exit(3)

        @hookimpl
        def lifespan(self):
            self.end("lifespan")
            return contextlib.nullcontext()
"""


@pytest.mark.measured
@pytest.mark.parametrize("where", ["construction", "lifespan"])
def test_a_plugin_that_ends_one_start_is_left_out_of_the_next(
    install: Install, start: Start, where: str
):
    install("ends", ENDS.format(where=where))
    assert start().process.wait(WAIT) == 3
    tried = start()
    tried.wait_for_log("first tried in another process")
    beside = start()  # may begin before the trial of the first is over
    for peer in (tried, beside):
        check_neighbours(peer)
        assert "plugin 'ends' failed: " in peer.log()
        assert peer.end() == 0
    later = start()
    check_neighbours(later)
    assert "plugin 'ends' failed: the start of " in later.log()
    assert "first tried in another process" not in later.log()
    assert later.end() == 0
    reason = listed()["ends"]["reason"]
    assert "so did a trial in a separate process (it ended with exit code 3)" in reason
    assert "`standards-mcp plugins check` tries it again" in reason


@pytest.mark.measured
@pytest.mark.parametrize(
    ("name", "how"), [("exits", "it ended with exit code 0"), ("hangs", "it was not done after")]
)
def test_a_plugin_that_exits_without_an_error_or_hangs_is_left_out_of_the_next_start(
    install: Install, start: Start, name: str, how: str
):
    attack_with(install, name)
    if name == "hangs":
        peer = start()
        peer.wait_for_log("plugin 'hangs' is still loading")
        peer.kill()
    else:
        die_once(start)
    for seconds in (10 if name == "hangs" else 60, 0):
        peer = start(trial=seconds)
        check_neighbours(peer)
        assert peer.end() == 0
    assert how in listed()[name]["reason"]


def test_a_start_does_not_wait_long_for_a_trial_and_the_next_one_knows_its_outcome(
    install: Install, start: Start
):
    attack_with(install, "exits")
    die_once(start)
    peer = start(patience=0)
    check_neighbours(peer)
    assert "its trial in a separate process is not over yet" in peer.log()
    wait_until(lambda: "with exit code 0" in listed()["exits"]["reason"], peer.log)
    assert peer.end() == 0


def test_a_plugin_that_is_left_out_is_back_once_a_check_has_tried_it(
    install: Install, start: Start
):
    module = attack_with(install, "exits")
    die_once(start)
    check = [*COMMAND, "plugins", "check"]
    for command in (check, [*COMMAND, "doctor"]):
        done = subprocess.run(command, capture_output=True, check=False, timeout=WAIT, text=True)
        assert done.returncode == 1, "the command itself is not ended"
        assert "it ended with exit code 0" in " ".join(done.stdout.split())

    module.write_text(GOOD.format(name="mended", type="Exits").replace("\n    ", "\n"), "utf-8")
    subprocess.run(check, capture_output=True, check=True, timeout=WAIT)
    peer = start()
    check_neighbours(peer)
    assert "mended" in peer.tool_names()
    assert peer.end() == 0


def test_without_a_required_plugin_no_start_goes_on_and_the_second_says_why(
    install: Install, start: Start
):
    attack_with(install, "exits")
    die_once(start)
    for _ in range(2):
        peer = start("--set", "plugins.exits.required=true")
        assert peer.process.wait(WAIT) != 0
        peer.wait_for_log("it ended with exit code 0")
        assert "first tried in another process" in peer.log()


SLEEPS = """
    import pathlib, time
    from standards_mcp import Plugin, hookimpl

    hold = pathlib.Path({folder!r}, "hold")

    def wait():
        with hold.with_name("tries").open("a") as file:
            file.write("x")
        while hold.exists():
            time.sleep(0.01)

    class SlowPlugin(Plugin):
        {hook}
"""
AT_IMPORT = "wait()"
AT_START = """@hookimpl
        def lifespan(self):
            wait()
            return __import__("contextlib").nullcontext()"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process is ended there without a signal")
@pytest.mark.parametrize(
    ("hook", "number"),
    [(AT_IMPORT, signal.SIGKILL), (AT_START, signal.SIGTERM)],
    ids=["killed at an import", "ended in a lifespan"],
)
def test_a_plugin_is_not_blamed_however_often_clients_end_a_start(
    install: Install, start: Start, tmp_path: Path, hook: str, number: signal.Signals
):
    install("slow", SLEEPS.format(folder=str(tmp_path), hook=hook))
    hold, tries = tmp_path / "hold", tmp_path / "tries"
    hold.touch()
    tries.touch()
    for count in range(3):  # the second and the third end during a trial
        peer = start(start=60)
        peer.wait_at_work(lambda: tries.stat().st_size > count)  # noqa: B023
        peer.process.send_signal(number)
        if hook == AT_START:
            peer.kill()  # its event loop is blocked
        peer.process.wait(WAIT)
        assert listed()["slow"]["status"] != "failed"
    hold.unlink()
    peer = start(start=60)
    check_neighbours(peer)
    assert peer.end() == 0
    assert listed()["slow"]["status"] == "started"


def test_the_documentation_tells_what_each_costs():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCS.read_text("utf-8").partition("## What misbehaviour costs")[2].splitlines()
        if line.startswith("| ")
    ]
    assert rows[1:] == [[row["does"], row["costs"], row["isolated"]] for row in ROWS]


def test_each_hostile_plugin_has_a_test():
    assert PLUGINS.keys() == BY_NAME.keys()
