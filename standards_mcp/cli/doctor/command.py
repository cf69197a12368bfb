"""``standards-mcp doctor``."""

from __future__ import annotations

import dataclasses
import sys

import anyio
import click

from standards_mcp._utils.streams import divert_stdout
from standards_mcp.cli.install.known import own_command
from standards_mcp.cli.invocation import Invocation
from standards_mcp.cli.output import examples, print_json, print_table

from .checks import Finding, examine

_SIGNS = {"ok": "ok", "warning": "!", "error": "ERROR"}


@click.command(epilog=examples("doctor", "doctor --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Look for whatever can keep a client from being served, and say how to mend it.

    Exit code 1 when anything is an error.
    """
    invocation = ctx.ensure_object(Invocation)
    invocation.report_alone()
    with divert_stdout():
        findings = anyio.run(
            examine, lambda: invocation.loaded_host, lambda: [*_command(), *invocation.options]
        )
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        print_table((_SIGNS[each.level], each.subject, _text(each)) for each in findings)
    if any(finding.level == "error" for finding in findings):
        ctx.exit(1)


def _command() -> tuple[str, ...]:
    try:
        return own_command()
    except LookupError:
        return (sys.executable, "-m", "standards_mcp")


def _text(finding: Finding) -> str:
    return f"{finding.message} -> {finding.fix}" if finding.fix else finding.message
