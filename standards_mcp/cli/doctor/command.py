"""``standards-mcp doctor``."""

from __future__ import annotations

import dataclasses
import sys

import anyio
import click

from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp.cli.install.known import own_command
from standards_mcp.cli.invocation import Invocation
from standards_mcp.commands import examples, json_option, print_json, print_table

from .checks import examine

_SIGNS = {"ok": "ok", "warning": "!", "error": "ERROR"}


@click.command(epilog=examples("doctor", "doctor --json"))
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Look for whatever can keep a client from being served, and say how to correct it.

    Exit code 1 when anything is an error.
    """
    invocation = ctx.ensure_object(Invocation)
    invocation.report_alone()
    try:
        command = own_command()
    except LookupError:
        command = (sys.executable, "-m", "standards_mcp")
    with divert_stdout():
        findings = anyio.run(
            examine, lambda: invocation.loaded_host, lambda: [*command, *invocation.options]
        )
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        print_table((_SIGNS[each.level], each.subject, each.text) for each in findings)
    if any(finding.level == "error" for finding in findings):
        ctx.exit(1)
