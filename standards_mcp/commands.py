"""Output of commands, for the host and for plugins.

People get tables, lines and a progress bar; programs get one JSON document. A command that asks a
tool, tries a sample or shows records returns a `Report`, and `reports` prints it.
"""

from __future__ import annotations

import codecs
import json
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, TypeAlias

import click
from click.shell_completion import CompletionItem

from standards_mcp._utils.installation import host_source, install_command, upgrade_command
from standards_mcp._utils.secrets import MASK, looks_secret
from standards_mcp._utils.streams import divert_stdout
from standards_mcp._utils.terminal import Look, styled
from standards_mcp._utils.text import counted, did_you_mean, printable
from standards_mcp.errors import StandardsMcpError

if TYPE_CHECKING:
    from standards_mcp.config.models.settings import Settings
    from standards_mcp.plugin import ToolCaller

__all__ = [
    "MASK",
    "Finding",
    "Level",
    "Look",
    "Report",
    "ServerCommand",
    "ServerCommands",
    "ask",
    "ask_tool",
    "counted",
    "did_you_mean",
    "divert_stdout",
    "examples",
    "host_source",
    "install_command",
    "json_option",
    "looks_secret",
    "offer",
    "print_json",
    "print_table",
    "print_text",
    "printable",
    "progress_bar",
    "progress_lines",
    "reports",
    "table",
    "upgrade_command",
]

Level: TypeAlias = Literal["ok", "warning", "error"]

_WIDTH: Final = 80
PAUSE: Final = 10.0
"""Seconds between two lines about progress."""
_JOIN_SECONDS: Final = 1.0
_P = ParamSpec("_P")

json_option: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)
"""The option ``--json``; the command gets it as *as_json*."""


def print_text(text: str, *, err: bool = False, look: Look | None = None) -> None:
    r"""Print lines that may contain foreign text, such as the text of a web page.

    Control characters, and characters that the stream cannot encode, are printed as ``\u0141``.
    Only a terminal shows the *look*.
    """
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "ascii":
        encoding = "utf-8"  # click writes UTF-8 in place of ASCII
    # Escaped, so that people can read the rest and JSON loses nothing. Otherwise one letter of
    # another alphabet would end a command on Windows.
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    click.echo(styled(shown, look or {}, stream), err=err)


def print_json(data: Any) -> None:
    """Print one JSON document, in ASCII unless stdout is UTF-8."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print_text(json.dumps(data, ensure_ascii=not unicode, indent=2))


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows in columns, of which the last is wrapped, or "" without rows."""
    cells = [tuple(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    left, lines = sum(widths) + 2 * len(widths), list[str]()
    for row in cells:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        first, *rest = textwrap.wrap(row[-1], max(_WIDTH - left, 24)) or [""]
        lines += [(head + first).rstrip(), *(" " * left + line for line in rest)]
    return "\n".join(lines)


def print_table(rows: Iterable[Sequence[str]], look: Look | None = None) -> None:
    """Print a `table`, if there are rows."""
    if text := table(rows):
        print_text(text, look=look)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a command, as data for programs and as text for people.

    Attributes:
        data: The JSON document that ``--json`` prints.
        text: Returns the text for people.
        exit_code: 0 if something was found or done, 1 if not, 2 for invalid input.
        notes: Lines that go to stderr, with ``--json``, too.
        is_error: True if the text is an error message, which goes to stderr.
        look: The colours and weight of the text on a terminal.
    """

    data: Any
    text: Callable[[], str]
    exit_code: int = 0
    notes: Sequence[str] = ()
    is_error: bool = False
    look: Look | None = None


def reports(function: Callable[_P, Report]) -> Callable[..., None]:
    """Make a command of a function that returns a `Report`.

    The command gets the option ``--json``, prints the report, and exits with its code. Put this
    decorator directly above the function, below the options and `click.pass_obj`.
    """

    @json_option
    @wraps(function)
    def command(*args: Any, as_json: bool, **options: Any) -> None:
        report = function(*args, **options)
        for note in report.notes:
            print_text(note, err=True)
        if as_json:
            print_json(report.data)
        else:
            print_text(report.text(), err=report.is_error, look=report.look)
        click.get_current_context().exit(report.exit_code)

    return command


def ask_tool(
    call: ToolCaller,
    name: str,
    arguments: Mapping[str, Any],
    text: Callable[[dict[str, Any]], str],
    *,
    is_found: Callable[[dict[str, Any]], object] = lambda _: True,
) -> Report:
    """Call a tool for a command, and return its answer as a report.

    The report has the structure of the answer, and the notes of the host. The exit code is 1 for a
    failed call or an answer without a result, and 2 for invalid arguments.

    Args:
        call: The object that `click.pass_obj` passes.
        name: The declared name of the tool.
        arguments: The arguments. None, such as an option that the user did not set, is left out.
        text: Returns the text for people, from the structure of an answer.
        is_found: Returns a true value if the structure has a result.
    """
    answer = call(name, {key: value for key, value in arguments.items() if value is not None})
    data = answer.structured or {}
    if answer.is_error or data.get("success") is False:
        code = 2 if data.get("error_type") == "invalid_input" else 1
        message = str(data.get("message", answer.text))
        return Report(data, lambda: message, code, answer.notes, is_error=True)
    return Report(data, lambda: text(data), 0 if is_found(data) else 1, answer.notes)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of ``standards-mcp doctor``.

    Attributes:
        fix: The next step; empty for a good result.
    """

    subject: str
    level: Level
    message: str
    fix: str = ""

    @property
    def text(self) -> str:
        """The message and the fix in one line."""
        return f"{self.message} -> {self.fix}" if self.fix else self.message


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The command with which a client starts a server with the configuration of this run.

    Attributes:
        program: The absolute path of this installation's program, with its first arguments.
        options: The options that name the configuration.
        variables: The environment variables that set a key, with their texts.
    """

    program: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class ServerCommands(Protocol):
    """The object of `click.pass_obj` in a command that comes with the host."""

    @property
    def own_names(self) -> Collection[str]:
        """The names of the commands that come with the host."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of this run.

        Raises:
            ConfigError: The configuration is invalid.
        """
        ...

    def change_settings(
        self,
        values: Callable[[Settings], Mapping[tuple[str, ...], object]],
        *,
        check: Callable[[Settings], None],
        report: Callable[[str], None] = print_text,
    ) -> None:
        """Set keys of the configuration file, and say so; the rest of the file stays as it is.

        Args:
            values: Returns, from the settings in the file, the new values by the paths of their
                keys; None removes a key.
            check: Raises an error if the settings, as they will be, are not the wanted ones;
                nothing has changed then.
            report: Prints the result.

        Raises:
            click.ClickException: The file cannot be read or written.
            ConfigError: The configuration is invalid, before or after the change.
        """
        ...

    def server_command(self, profile: str | None = None) -> ServerCommand:
        """Return the command for this configuration, by default with the profile of this run.

        Raises:
            click.ClickException: A secret would be on the command line, or the installation is in a
                cache that may be emptied at any time.
        """
        ...


@contextmanager
def progress_lines(line: Callable[[], str], write: Callable[[str], None]) -> Generator[None]:
    """Write a line every ten seconds, also while no progress is reported.

    A text encoder may be silent for minutes, while it downloads or loads its model.

    Args:
        line: Returns the progress in words. It is called in another thread.
        write: Writes the line, with the seconds that have passed.
    """
    ended, began = threading.Event(), time.monotonic()

    def write_lines() -> None:
        while not ended.wait(PAUSE):
            try:
                write(f"{line()}, {time.monotonic() - began:,.0f} s")
            except (OSError, ValueError):  # stderr is closed
                return

    thread = threading.Thread(target=write_lines, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_JOIN_SECONDS)


@contextmanager
def progress_bar(label: str, *, is_shown: bool = True) -> Generator[Callable[[int, int], None]]:
    """Show progress: a bar if stderr is a terminal, else a line on stderr every ten seconds.

    Yield a function to call with the number of finished items and the total. The lines are printed
    even while it is not called.

    Args:
        is_shown: If False, print nothing.
    """
    if not is_shown:
        yield lambda _done, _total: None
        return
    if not sys.stderr.isatty():
        counts = ""

        def count(done: int, total: int) -> None:
            nonlocal counts
            counts = f": {done:,} of {total:,}"

        with progress_lines(lambda: f"{label}{counts}", lambda line: print_text(line, err=True)):
            yield count
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def update(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield update


def examples(*lines: str) -> str:
    """Return examples for the end of a command's help, the *epilog* of `click.command`.

    Each line is printed after ``standards-mcp``.
    """
    return "\b\nExamples:\n" + "\n".join(f"  standards-mcp {line}" for line in lines)


def offer(
    names: Callable[[Any], Iterable[tuple[str, str]]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a ``shell_complete`` that offers names, each with a short help.

    Nothing is offered if the configuration or a service cannot be read: an error message would end
    up in the line that is being typed.

    Args:
        names: Returns the names and their help. It is called with the object of the context.
    """

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        try:
            with divert_stdout():
                found = list(names(ctx.obj))
        except (StandardsMcpError, OSError):
            return []
        return [
            CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)
        ]

    return complete


def ask(question: str) -> None:
    """Print the effect of a command and ask for confirmation on a terminal; both go to stderr.

    Raises:
        click.ClickException: The user declines, or there is no terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.ClickException(
            f"{question} Nothing was changed. Run again with --yes to confirm"
        )
    print_text(question, err=True)
    if not click.confirm("Go on?", err=True):
        raise click.ClickException("nothing was changed")
