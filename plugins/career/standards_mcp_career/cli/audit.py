"""Commands ``audit show``, ``audit export`` and ``audit verify``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_result
from standards_mcp_career.audit import Verification, line_of, read_lines, verify_all
from standards_mcp_career.settings import CareerSettings

from .records import opened

_PAGE = 1000


def audit_group(settings: CareerSettings) -> click.Group:
    """Return the commands ``audit show``, ``audit export`` and ``audit verify``."""
    group = click.Group("audit", help="Read, export and verify the audit log.")
    group.add_command(_show(settings))
    group.add_command(_export(settings))
    group.add_command(_verify(settings))
    return group


def _show(settings: CareerSettings) -> click.Command:
    @click.command("show", epilog=examples("career audit show TRACE --json"))
    @click.argument("trace")
    @json_option
    @click.pass_context
    def show(context: click.Context, trace: str, *, as_json: bool) -> None:
        """Show the events of TRACE."""
        with opened(settings) as career:
            answer = career.audit.page(trace, 0, _PAGE)
            while len(answer["events"]) < answer["total"]:
                more = career.audit.page(trace, len(answer["events"]), _PAGE)
                answer["events"] += more["events"]
        lines = (
            f"{event['created_at']} {event['event_type']} {event['payload']}"
            for event in answer["events"]
        )
        shown = "\n".join(lines) or f"Trace {trace} has no events."
        print_result(answer, lambda: shown, as_json=as_json)
        context.exit(int(not answer["total"]))

    return show


def _export(settings: CareerSettings) -> click.Command:
    @click.command("export", epilog=examples("career audit export audit.jsonl"))
    @click.argument("file", type=click.Path(dir_okay=False), default="-")
    def export(file: str) -> None:
        """Write all events to FILE, or to stdout, as JSON Lines."""
        with opened(settings) as career, click.open_file(file, "wb") as out:
            for event in career.audit.events():
                out.write(line_of(event).encode() + b"\n")

    return export


def _verify(settings: CareerSettings) -> click.Command:
    @click.command(
        "verify", epilog=examples("career audit verify", "career audit verify --file audit.jsonl")
    )
    @click.argument("trace", required=False)
    @click.option(
        "--file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="An export, in place of the database.",
    )
    @json_option
    @click.pass_context
    def verify(
        context: click.Context, trace: str | None, file: Path | None, *, as_json: bool
    ) -> None:
        """Verify the events of TRACE, or all events."""
        if trace is not None and file is not None:
            raise click.UsageError("Give TRACE or --file, not both.")
        answer = _of_file(file) if file else _of_database(settings, trace)
        print_result(answer, lambda: "\n".join(_lines(answer)), as_json=as_json)
        context.exit(int(not answer["valid"] or not answer["traces"]))

    return verify


def _of_file(file: Path) -> Verification:
    with file.open("rb") as lines:
        try:
            return verify_all(read_lines(lines))
        except InvalidInputError as error:
            raise InvalidInputError(f"{file}: {error}") from error


def _of_database(settings: CareerSettings, trace: str | None) -> Verification:
    with opened(settings) as career:
        return career.audit.verify(trace)


def _lines(answer: Verification) -> Iterator[str]:
    for trace in answer["traces"]:
        yield f"{trace['trace_id']}: {trace['error'] or 'valid'}"
    if not answer["traces"]:
        yield "There are no events."
        return
    yield f"{len(answer['traces'])} traces, {'all valid' if answer['valid'] else 'NOT VALID'}"
