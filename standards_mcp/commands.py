"""What commands share, those of the host and those of plugins: what they print, and how.

People get tables, lines and a bar of progress; programs get one JSON document.
"""

from __future__ import annotations

import codecs
import json
import sys
import textwrap
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from standards_mcp._utils.installation import install_command, upgrade_command
from standards_mcp._utils.progress import progress_lines
from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp._utils.text import counted, printable
from standards_mcp.errors import StandardsMcpError

if TYPE_CHECKING:
    from standards_mcp.plugin import ToolResult

__all__ = [
    "ask",
    "counted",
    "divert_stdout",
    "examples",
    "install_command",
    "json_option",
    "offer",
    "print_answer",
    "print_json",
    "print_result",
    "print_table",
    "print_text",
    "printable",
    "progress_bar",
    "progress_lines",
    "upgrade_command",
]

_WIDTH: Final = 80

json_option: Final = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document."
)
"""The option ``--json``; the command gets it as *as_json*."""


def print_text(text: str, *, err: bool = False) -> None:
    r"""Print lines that may hold text of others, such as what a page says.

    What would steer a terminal, and what the stream cannot show, is printed as ``\u0141``.
    """
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "ascii":
        encoding = "utf-8"  # which click writes then
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    click.echo(shown, err=err)


def print_json(data: Any) -> None:
    """Print one JSON document, in ASCII where the terminal knows no more."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print_text(json.dumps(data, ensure_ascii=not unicode, indent=2))


def print_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows in columns; the last column is wrapped to fit the width."""
    lines = [tuple(map(str, row)) for row in rows]
    if not lines:
        return
    widths = [max(len(row[index]) for row in lines) for index in range(len(lines[0]) - 1)]
    left = sum(widths) + 2 * len(widths)
    for row in lines:
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        wrapped = textwrap.wrap(row[-1], max(_WIDTH - left, 24)) or [""]
        print_text((head + wrapped[0]).rstrip())
        for line in wrapped[1:]:
            print_text(" " * left + line)


def print_result(data: Any, text: Callable[[], str], *, as_json: bool) -> None:
    """Print *data* as JSON, or what *text* makes of it for people."""
    if as_json:
        print_json(data)
    else:
        print_text(text())


def print_answer(
    answer: ToolResult, text: Callable[[dict[str, Any]], str], *, as_json: bool
) -> None:
    """Print what a tool answered.

    As JSON that is its structure, also of a call that failed. People get what *text* makes of the
    structure, or why the call failed, on stderr. The exit code is left to the command.
    """
    found = answer.structured or {}
    if answer.is_error and not as_json:
        print_text(found.get("message", answer.text), err=True)
    else:
        print_result(found, lambda: text(found), as_json=as_json)


@contextmanager
def progress_bar(label: str, *, is_shown: bool = True) -> Generator[Callable[[int, int], None]]:
    """Give a function that takes how many are done, and of how many.

    It draws a bar on stderr if that is a terminal. Otherwise it prints a line there every ten
    seconds, also while the function is not called.

    Args:
        is_shown: False for neither.
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

        def tell(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield tell


def examples(*lines: str) -> str:
    """Return the end of a command's help that shows how it is called.

    Each line follows ``standards-mcp``. The text is for the *epilog* of `click.command`.
    """
    return "\b\nExamples:\n" + "\n".join(f"  standards-mcp {line}" for line in lines)


def offer(
    names: Callable[[Any], Iterable[tuple[str, str]]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a ``shell_complete`` that offers names, each with a word of help.

    Nothing is offered if the configuration or a service cannot be read: an error message would end
    up in the line that is being typed.

    Args:
        names: Returns the names; it gets the object of the command's context.
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


def ask(what: str) -> None:
    """Say what a command would do, and ask the user to agree; both go to stderr.

    Raises:
        click.ClickException: The answer is no, or there is no terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.ClickException(f"{what} Nothing is changed; add --yes if that is meant")
    print_text(what, err=True)
    if not click.confirm("Go on?", err=True):
        raise click.ClickException("nothing is changed")
