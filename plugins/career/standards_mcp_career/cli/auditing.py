"""Commands ``audit show``, ``audit export`` and ``audit verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from standards_mcp import InvalidInputError
from standards_mcp.commands import Report, examples, reports
from standards_mcp_career.audit import Verification, line_of, read_lines, verify_all
from standards_mcp_career.settings import CareerSettings

from .records import opened

_MOST_EVENTS: Final = 2**31


def audit_group(settings: CareerSettings) -> click.Group:
    """Return the commands ``audit show``, ``audit export`` and ``audit verify``."""
    group = click.Group("audit", help="Read, export and verify the audit log.")

    @group.command("show", epilog=examples("career audit show TRACE --json"))
    @click.argument("trace")
    @reports
    def show(trace: str) -> Report:
        """Show the events of TRACE."""
        with opened(settings) as career:
            answer = career.audit.page(trace, 0, _MOST_EVENTS)
        lines = (
            f"{event['created_at']} {event['event_type']} {event['payload']}"
            for event in answer["events"]
        )
        text = "\n".join(lines) or f"Trace {trace} has no events."
        return Report(answer, lambda: text, int(not answer["total"]))

    @group.command("export", epilog=examples("career audit export audit.jsonl"))
    @click.argument("file", type=click.Path(dir_okay=False), default="-")
    def export(file: str) -> None:
        """Write all events to FILE, or to stdout, as JSON Lines."""
        with opened(settings) as career, click.open_file(file, "wb") as out:
            for event in career.audit.events():
                out.write(line_of(event).encode() + b"\n")

    @group.command(
        "verify", epilog=examples("career audit verify", "career audit verify --file audit.jsonl")
    )
    @click.argument("trace", required=False)
    @click.option(
        "--file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="An export, in place of the database.",
    )
    @reports
    def verify(trace: str | None, file: Path | None) -> Report:
        """Verify the events of TRACE, or all events."""
        if trace is not None and file is not None:
            raise click.UsageError("Give TRACE or --file, not both.")
        if file is not None:
            answer = _verify_file(file)
        else:
            with opened(settings) as career:
                answer = career.audit.verify(trace)
        code = int(not answer["valid"] or not answer["traces"])
        return Report(answer, lambda: _text(answer), code)

    return group


def _verify_file(file: Path) -> Verification:
    with file.open("rb") as lines:
        try:
            return verify_all(read_lines(lines))
        except InvalidInputError as error:
            raise InvalidInputError(f"{file}: {error}") from error


def _text(answer: Verification) -> str:
    traces = answer["traces"]
    if not traces:
        return "There are no events."
    lines = [f"{trace['trace_id']}: {trace['error'] or 'valid'}" for trace in traces]
    summary = f"{len(traces)} traces, {'all valid' if answer['valid'] else 'NOT VALID'}"
    return "\n".join([*lines, summary])
