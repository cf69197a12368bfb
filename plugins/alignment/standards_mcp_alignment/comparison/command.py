"""``standards-mcp alignment compare``."""

from __future__ import annotations

from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import Report, examples, reports
from standards_mcp_alignment.commands import ask_report


@click.command(
    "compare",
    epilog=examples(
        'alignment compare "Ohio 2010" "Ohio 2017" --grade 4',
        "alignment compare OLD_SET_ID NEW_SET_ID --json",
    ),
)
@click.argument("left")
@click.argument("right")
@click.option("--grade", help="One grade, such as K, 3 or 9-12: only what concerns it.")
@click.option("--subject", help="The subject, if the sides have several.")
@click.option("--detail", type=click.Choice(["short", "full"]), help="full: list kept ones, too.")
@click.pass_obj
@reports
def comparison_command(call: ToolCaller, **arguments: Any) -> Report:
    """Show what changed from the standards LEFT to the standards RIGHT.

    Each is a standard set by its id or title, or a jurisdiction, with the year of an edition. Exit
    code 2 if an argument is wrong.
    """
    return ask_report(call, "compare_standards", arguments)
