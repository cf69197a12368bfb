"""``standards-mcp alignment coverage``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import Report, examples, reports
from standards_mcp_alignment.commands import ask_report


@click.command(
    "coverage",
    epilog=examples(
        'alignment coverage --grade 3 --subject math "Fold paper"',
        "alignment coverage --grade 3 --subject math --plan 3.MD.A.1",
    ),
)
@click.argument("activities", nargs=-1, metavar="[ACTIVITY]...")
@click.option("--grade", required=True, help="One grade, such as K, 3 or 9-12.")
@click.option("--subject", required=True, help="Subject, for example math or ELA.")
@click.option("--jurisdiction", help="The state or body whose standards count.")
@click.option("--set", "standard_set", help="The id or title of one standard set.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text file with an activity in each line.",
)
@click.option("--plan", is_flag=True, help="Propose the smallest set that covers the most.")
@click.pass_obj
@reports
def coverage_command(
    call: ToolCaller, activities: Iterable[str], files: Iterable[Path], **options: Any
) -> Report:
    """Show which standards of a grade the activities meet, and which are missing.

    Each ACTIVITY is a description or a code. Exit code 2 if an argument is wrong.
    """
    lines = (line for file in files for line in file.read_text("utf-8", "replace").splitlines())
    listed = [*activities, *filter(str.strip, lines)]
    return ask_report(call, "check_coverage", {"activities": listed, **options})
