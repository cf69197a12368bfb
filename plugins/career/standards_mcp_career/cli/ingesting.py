"""The command that takes a resume in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from standards_mcp.commands import examples, json_option

from .showing import call_tool


@click.command(
    "ingest", epilog=examples("career ingest resume.pdf", "career ingest resume.pdf --no-persist")
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--no-persist", is_flag=True, help="Only look at it.")
@json_option
@click.pass_context
def ingest(context: click.Context, path: Path, *, no_persist: bool, as_json: bool) -> None:
    """Take the resume at PATH in."""

    def shown(answer: dict[str, Any]) -> str:
        done = "stored" if answer["stored"] else "not stored" if no_persist else "known already"
        return f"{answer['resume_id']}: {done}\n{answer['resume_hash']}"

    arguments = {"input_path": str(path.absolute()), "persist": not no_persist}
    call_tool(context, "ingest_resume", arguments, shown, as_json=as_json)
