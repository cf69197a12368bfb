"""Colour and weight on a real terminal, and plain text everywhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from support.waiting import WAIT

from standards_mcp._utils.terminal import styled

pty = pytest.importorskip("pty", reason="needs a POSIX terminal")

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("starter_catalog")]

STYLE = re.compile(r"\x1b\[[\d;]*m")
STRONG, QUIET, GREEN, YELLOW, RED = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m\x1b[1m"
SEARCH = ["search", "compare fractions with strips", "--grade", "3", "--top", "1"]
SEARCH_BASS = ["search", "a bass solo", "--top", "1"]
LOOKUP = ["lookup", "3.NF.A.1"]
LIST = ["plugins", "list"]
HIDDEN = ["--set", "tools.disable=['find_relevant_standards']"]
BROKEN = ["--set", "plugins.catalog.path=/dev/null/x"]
COMMANDS = [
    pytest.param(SEARCH, (f"{STRONG}1. CCSS.", f"{QUIET}   Why: "), id="search"),
    pytest.param(SEARCH_BASS, (f"{YELLOW}weak",), id="a weak result"),
    pytest.param(LOOKUP, (f"{STRONG}CCSS.Math.Content.3.NF.A.1", f"{QUIET}  id "), id="lookup"),
    pytest.param([*HIDDEN, "tools"], (f"{STRONG}get_sta", f"{YELLOW}not served: "), id="tools"),
    pytest.param(LIST, (f"{STRONG}search", "discovered"), id="plugins list"),
    pytest.param(["doctor"], (f"{GREEN}ok\x1b[0m  versions",), id="doctor"),
    pytest.param([*BROKEN, "doctor"], (f"{RED}ERROR\x1b[0m",), id="doctor with errors"),
]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "standards_mcp", *arguments]


def piped(*arguments: str) -> str:
    ran = subprocess.run(command(*arguments), capture_output=True, timeout=WAIT, check=False)
    return ran.stdout.decode()


def on_terminal(*arguments: str, **variables: str) -> str:
    """Run the program with stdout on a terminal of its own, and return what it wrote there."""
    reading, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "", **variables}
    chunks: list[bytes] = []
    with subprocess.Popen(
        command(*arguments), stdout=terminal, stderr=subprocess.DEVNULL, env=environment
    ):
        os.close(terminal)
        with suppress(OSError):  # how Linux reports that nobody writes any more
            while chunk := os.read(reading, 1 << 16):
                chunks.append(chunk)
    os.close(reading)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def without_start(text: str) -> str:
    """Leave out what `doctor` says about the start, which depends on the speed of the machine."""
    return re.split(r"^\S+ +start ", text, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(("arguments", "expected"), COMMANDS)
def test_a_terminal_gets_the_text_of_a_pipe_in_colour_and_weight(
    arguments: list[str], expected: tuple[str, ...]
):
    shown, plain = on_terminal(*arguments), piped(*arguments)
    assert plain
    assert "\x1b" not in plain
    assert without_start(STYLE.sub("", shown)) == without_start(plain)
    for part in expected:
        assert part in shown


@pytest.mark.parametrize(
    ("more", "variables"),
    [
        pytest.param([], {"NO_COLOR": "1"}, id="NO_COLOR"),
        pytest.param([], {"TERM": "dumb"}, id="a dumb terminal"),
        pytest.param(["--json"], {}, id="JSON"),
    ],
)
@pytest.mark.parametrize("arguments", [SEARCH, LOOKUP, LIST, ["tools"]], ids=lambda args: args[0])
def test_nothing_but_a_terminal_for_people_gets_colours(
    arguments: list[str], more: list[str], variables: dict[str, str]
):
    plain = piped(*arguments, *more)
    assert plain
    assert on_terminal(*arguments, *more, **variables) == plain


class Terminal:
    def isatty(self) -> bool:
        return True


def test_the_first_pattern_that_matches_gives_the_style(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    look = {"^ok": "good", r"^\S+": "strong", "not .*": "warning"}
    text = styled("ok  no\nbad ok not ok\n", look, Terminal())  # type: ignore[arg-type]
    assert text == f"{GREEN}ok\x1b[0m  no\n{STRONG}bad\x1b[0m ok {YELLOW}not ok\x1b[0m\n"
