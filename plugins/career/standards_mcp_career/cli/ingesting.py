"""The command that takes a resume in."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from standards_mcp.commands import examples, json_option, print_result
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings


def ingest_command(settings: CareerSettings) -> click.Command:
    """Return the command ``ingest``."""

    @click.command(
        "ingest",
        epilog=examples("career ingest resume.pdf", "career ingest resume.pdf --no-persist"),
    )
    @click.argument("path", type=click.Path(path_type=Path))
    @click.option("--no-persist", is_flag=True, help="Only look at it.")
    @json_option
    def ingest(path: Path, *, no_persist: bool, as_json: bool) -> None:
        """Take the resume at PATH in, from any folder."""
        with closing(open_career(settings, reads_any_resume=True)) as career:
            answer = career.ingest.ingest_resume(str(path.absolute()), persist=not no_persist)
        done = "stored" if answer["stored"] else "not stored" if no_persist else "known already"
        shown = f"{answer['resume_id']}: {done}\n{answer['resume_hash']}"
        print_result(answer, lambda: shown, as_json=as_json)

    return ingest
