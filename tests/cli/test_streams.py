"""The program with standard streams that are closed, full or cut, and on an early Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.waiting import WAIT

pytestmark = [
    pytest.mark.processes,
    pytest.mark.measured,
    pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell"),
]

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


class Ended(NamedTuple):
    code: int
    out: str
    lines: list[str]


def shell(redirections: str, *arguments: str, stdin: bytes = b"") -> Ended:
    """Run the program with redirections as a shell spells them; log lines are left out."""
    script = f'exec "$0" -m standards_mcp "$@" {redirections}'
    command = ["sh", "-c", script, sys.executable, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=WAIT, check=False)
    lines = [line for line in done.stderr.decode().splitlines() if not line.startswith("{")]
    return Ended(done.returncode, done.stdout.decode(), lines)


@pytest.mark.parametrize("command", [["tools"], ["tools", "--json"], ["--help"], ["serve"]])
def test_output_that_cannot_be_written_is_an_error_of_one_line(command: list[str]):
    ended = shell(">/dev/full", *command, stdin=PING)
    assert ended.code == 1
    assert len(ended.lines) == 1
    assert "the disk is full; free some space" in ended.lines[0]


@pytest.mark.parametrize("command", ["tools", "serve"])
def test_a_closed_stdout_is_an_error_of_one_line(command: str):
    ended = shell(">&-", command, stdin=PING)
    line = "standards-mcp: stdout is closed, so there is nowhere to write to"
    assert ended == (1, "", [line])


def test_a_server_without_stdin_says_so():
    ended = shell("<&-", "serve")
    assert ended.code == 1
    assert [line for line in ended.lines if "stdin is closed" in line] == ended.lines[:1]


def test_a_command_needs_no_stdin_and_no_stderr():
    ended = shell("<&- 2>&-", "tools")
    assert ended.code == 0
    assert "find_relevant_standards" in ended.out


def test_a_server_without_stderr_answers():
    ended = shell("2>&-", "serve", stdin=PING)
    assert (ended.code, ended.out) == (0, '{"jsonrpc":"2.0","id":1,"result":{}}\n')


def test_a_reader_that_stops_early_is_no_reason_for_a_message():
    ended = shell("| head -c 1 >/dev/null", "tools")
    assert ended.lines == []


def test_ctrl_c_during_the_first_imports_is_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    assert shell("", "tools") == (130, "", [])


@pytest.mark.parametrize(("command", "codes"), [("tools", {130}), ("serve", {130, -signal.SIGINT})])
def test_ctrl_c_while_plugins_are_imported_is_quiet(
    install: Callable[..., Path], command: str, codes: set[int]
):
    install("slow", "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    ended = shell("", command)
    assert ended.code in codes
    assert "".join(ended.lines) == ""
