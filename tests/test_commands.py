"""What the commands of the host and of plugins share."""

from __future__ import annotations

import io
import json
import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import click
import pytest
from click.testing import CliRunner
from support.waiting import wait_until

from standards_mcp import ToolCaller, ToolResult, commands
from standards_mcp.commands import (
    Report,
    ask_tool,
    examples,
    json_option,
    print_json,
    print_table,
    print_text,
    progress_bar,
    reports,
)

Captured = pytest.CaptureFixture[str]
Stdout = Callable[[str], Callable[[], bytes]]


@pytest.fixture
def stdout(monkeypatch: pytest.MonkeyPatch) -> Stdout:
    """Give stdout an encoding, and return what reads the bytes that were written."""

    def give(encoding: str) -> Callable[[], bytes]:
        buffer = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding, newline="\n"))
        return buffer.getvalue

    return give


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\u001b[2Jb"),
        ("a\rb\x07\x9b", "a\\u000db\\u0007\\u009b"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("one\n\ttwo Łódź", "one\n\ttwo Łódź"),
    ],
)
def test_control_characters_are_printed_as_escapes(text: str, shown: str, capsys: Captured):
    print_text(text)
    print_text(text, err=True)
    assert tuple(capsys.readouterr()) == (f"{shown}\n", f"{shown}\n")


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("cp1252", b"\\u0141\xf3d\\u017a \\U0001f9ea"),
        ("latin-1", b"\\u0141\xf3d\\u017a \\U0001f9ea"),
        ("utf-8", "Łódź 🧪".encode()),
        ("ascii", "Łódź 🧪".encode()),  # click takes a stream for UTF-8 then
    ],
)
def test_characters_that_a_stream_cannot_encode_are_printed_as_escapes(
    encoding: str, written: bytes, stdout: Stdout
):
    read = stdout(encoding)
    print_text("Łódź 🧪")
    assert read() == written + b"\n"


def test_a_file_name_that_is_no_text_is_printed_as_an_escape(stdout: Stdout):
    read = stdout("utf-8")
    print_text("caf\udce9.md")
    assert read() == b"caf\\udce9.md\n"


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("utf-8", '"Ł é'), ("cp1252", '"\\u0141 \\u00e9'), ("ascii", '"\\u0141 \\u00e9')],
)
def test_json_is_ascii_where_the_stream_is_not_utf8_and_reads_back_as_it_was(
    encoding: str, written: str, stdout: Stdout
):
    read = stdout(encoding)
    data = {"a": ["Ł é\x1b\x7f\u202e\ud800\n"]}
    print_json(data)
    assert read().decode().startswith('{\n  "a": [\n    ' + written)
    assert not set(read()) & {0x1B, 0x7F}
    assert json.loads(read()) == data


def test_a_table_has_columns_and_wraps_the_last(capsys: Captured):
    print_table([])
    print_table([("a", "one"), ("long", " word" * 20)])
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "a     one"
    assert second.startswith("long   word")
    assert third.startswith("      word")
    assert len(second) <= 80


def test_text_for_people_is_printable_and_their_document_complete():
    answer = ToolResult(text="", structured={"books": ["Bees\x1b"]})
    assert ask(answer, "b")[1] == "Bees\\u001b\n"
    _, document, *_ = ask(answer, "b", "--json")
    assert json.loads(document) == answer.structured
    assert "\x1b" not in document
    failed = ToolResult(text="It is \x1b down.", is_error=True)
    assert ask(failed, "b")[1:3] == ("", "It is \\u001b down.\n")


def test_a_bar_counts_up_on_a_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("Reading") as progress:
        progress(1, 4)
        progress(2, 4)
        progress(4, 4)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Reading" in err
    assert [share in err for share in ("25%", "50%", "100%")] == [True] * 3


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_can_be_switched_off(
    is_terminal: bool, capsys: Captured, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(commands, "PAUSE", 0.01)
    with progress_bar("Reading", is_shown=False) as progress:
        progress(1, 1)
        assert not lines_are_printed()
    assert tuple(capsys.readouterr()) == ("", "")


def test_without_a_terminal_a_line_says_how_far_it_is_also_before_anything_is_done(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commands, "PAUSE", 0.01)
    printed = ""

    def has(line: str) -> re.Match[str] | None:
        nonlocal printed
        out, err = capsys.readouterr()
        assert out == ""
        printed += err
        return re.search(line, printed, re.MULTILINE)

    with progress_bar("Reading") as progress:
        wait_until(lambda: has(r"^Reading, \d+ s$"))
        progress(1_500, 4_000)
        wait_until(lambda: has(r"^Reading: 1,500 of 4,000, \d+ s$"))
    assert not lines_are_printed()


def lines_are_printed() -> bool:
    return "progress" in {each.name for each in threading.enumerate()}


def test_a_command_takes_the_option_and_shows_examples():
    @click.command(epilog=examples("shelf list", 'shelf find "bees" --json'))
    @json_option
    def shelf(*, as_json: bool) -> None:
        print_text("[]" if as_json else "empty")

    assert CliRunner().invoke(shelf).output == "empty\n"
    assert CliRunner().invoke(shelf, ["--json"]).output == "[]\n"
    told = CliRunner().invoke(shelf, ["--help"]).output
    assert "--json  Print one JSON document." in told
    shown = [
        "  Examples:",
        "    standards-mcp shelf list",
        '    standards-mcp shelf find "bees" --json',
    ]
    assert told.splitlines()[-3:] == shown


def ask(answer: ToolResult, *arguments: str) -> tuple[int, str, str, dict[str, Any]]:
    """Run a command that asks a tool, and return its exit code, its output and its call."""
    calls: dict[str, Any] = {}

    def call(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        calls[name] = dict(arguments)
        return answer

    @click.command()
    @click.argument("word")
    @click.option("--top", type=int)
    @click.pass_obj
    @reports
    def find(call: ToolCaller, word: str, *, top: int | None) -> Report:
        """Find books."""
        query = {"word": word, "top": top}
        books = "\n".join
        return ask_tool(
            call, "find", query, lambda data: books(data["books"]), is_found=lambda d: d["books"]
        )

    done = CliRunner().invoke(find, arguments, obj=call)
    return done.exit_code, done.stdout, done.stderr, calls


def test_a_command_asks_a_tool_with_the_options_that_are_set():
    answer = ToolResult(text="for a model", structured={"books": ["Bees", "Clocks"]})
    assert ask(answer, "b") == (0, "Bees\nClocks\n", "", {"find": {"word": "b"}})
    *_, calls = ask(answer, "b", "--top", "2")
    assert calls == {"find": {"word": "b", "top": 2}}


def test_notes_of_the_host_go_to_stderr_with_text_and_json():
    answer = ToolResult(text="", structured={"books": ["Bees"]}, notes=("It was cut.",))
    assert ask(answer, "b")[1:3] == ("Bees\n", "It was cut.\n")
    code, out, err, _ = ask(answer, "b", "--json")
    assert (code, json.loads(out), err) == (0, {"books": ["Bees"]}, "It was cut.\n")


@pytest.mark.parametrize(
    ("structured", "is_error", "code"),
    [
        ({"books": []}, False, 1),
        ({"error_type": "api_error", "message": "It is down."}, True, 1),
        ({"error_type": "invalid_input", "message": "Give a word."}, True, 2),
        ({"success": False, "error_type": "no_results", "message": "No book."}, False, 1),
        (None, True, 1),
    ],
)
def test_the_exit_code_tells_results_failures_and_invalid_input_apart(
    structured: dict[str, Any] | None, is_error: bool, code: int
):
    answer = ToolResult(text="It failed.", structured=structured, is_error=is_error)
    is_failed = structured is None or "error_type" in structured
    message = (structured or {}).get("message", "It failed.")
    assert ask(answer, "b")[:3] == (code, *(("", f"{message}\n") if is_failed else ("\n", "")))
    json_code, out, err, _ = ask(answer, "b", "--json")
    assert (json_code, json.loads(out), err) == (code, structured or {}, "")


def test_a_command_without_a_tool_reports_its_own_data():
    @click.command()
    @click.argument("count", type=int)
    @reports
    def show(count: int) -> Report:
        """Show rows."""
        rows = list(range(count))
        return Report(rows, lambda: f"{rows}" if rows else "No rows.", exit_code=int(not rows))

    assert CliRunner().invoke(show, ["2"]).output == "[0, 1]\n"
    empty = CliRunner().invoke(show, ["0", "--json"])
    assert (empty.exit_code, empty.output) == (1, "[]\n")
    help_text = CliRunner().invoke(show, ["--help"]).output
    assert "Show rows." in help_text
    assert "--json" in help_text
