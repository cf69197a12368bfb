"""``standards-mcp alignment check``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import Report, examples, reports

from .tool import NAME


@click.command(
    "check",
    epilog=examples("alignment check lesson.docx --grade 4", "alignment check - --json"),
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--grade", help="Grade or grades, for example 3, K-2 or 'high school'.")
@click.option("--subject", help="Subject, for example math or ELA.")
@click.option("--jurisdiction", help="State or body, for example Texas.")
@click.pass_obj
@reports
def check_command(
    call: ToolCaller,
    file: Path,
    grade: str | None,
    subject: str | None,
    jurisdiction: str | None,
) -> Report:
    """Check the codes and quoted standards in FILE, or in standard input (-).

    Markdown, HTML, text, PDF and Word files are read. Exit code 1 when a code has a problem, 2
    when the file or an option is wrong.
    """
    options = {
        "text": _read(file),
        "grade": grade,
        "subject": subject,
        "jurisdiction": jurisdiction,
    }
    answer = call(NAME, {name: value for name, value in options.items() if value is not None})
    data = answer.structured or {}
    if answer.is_error:
        code = 2 if data.get("error_type") == "invalid_input" else 1
        return Report(data, lambda: str(data.get("message", answer.text)), code, is_error=True)
    has_problem = any(entry["status"] != "ok" for entry in data["codes"])
    return Report(data, lambda: answer.text, int(has_problem), answer.notes)


def _read(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    from standards_mcp_documents import DocumentError, DocumentReader  # noqa: PLC0415  - costs start-up time

    try:
        with DocumentReader() as reader:
            return reader.read(file).text
    except DocumentError as error:
        raise click.UsageError(f"{file}: {error}") from None
