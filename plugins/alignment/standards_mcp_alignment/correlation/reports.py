"""Write reports as CSV, JSON and Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from standards_mcp_alignment.provenance import Provenance

from .html_report import HTML_BEGINNING, html_report
from .outcomes import AlignmentReport, Outcome, Verdict, spreadsheet_cell
from .report_texts import digests, probability_text, status_text, summary_lines

Format: TypeAlias = Literal["csv", "json", "markdown", "html"]
BY_SUFFIX: Final[Mapping[str, Format]] = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}
_COLUMNS: Final = (
    "file", "place", "id", "item", "title", "grade", "subject", "rank", "status", "decided_by",
    "probability", "score", "basis", "code", "standard", "grades", "jurisdiction", "standard_set",
    "statement", "notes", "catalog_sha256", "model_sha256", "settings_sha256", "input_sha256",
)  # fmt: skip
_BEGINNINGS: Final = (
    "file,place,id,item,title,",
    '{\n "summary": {\n  "files": ',
    "# Alignment report\n\n- ",
    HTML_BEGINNING,
)
_MARKS: Final = re.compile(r"([\\`*_\[\]|~])")


def format_of(path: Path) -> Format | None:
    """Return the format of a file by its suffix, or None."""
    return BY_SUFFIX.get(path.suffix.lower())


def is_report(path: Path) -> bool:
    """Return True if a file begins as a report of an earlier run.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1_000).startswith(_BEGINNINGS)


def render(report: AlignmentReport, kind: Format) -> str:
    """Return the text of a report."""
    renderers: dict[Format, Callable[[AlignmentReport], str]] = {
        "csv": _csv,
        "json": lambda report: json.dumps(report.to_dict(), ensure_ascii=False, indent=1) + "\n",
        "markdown": _markdown,
        "html": html_report,
    }
    return renderers[kind](report)


def _csv(report: AlignmentReport) -> str:
    """Return a row for each pair, with all digests; an item without a standard has one row."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(_COLUMNS)
    for outcome in report.outcomes:
        verdicts: list[Verdict | None] = [*outcome.verdicts]
        for rank, verdict in enumerate(verdicts or [None], 1):
            row = _csv_row(outcome, verdict, rank, report.provenance)
            table.writerow([spreadsheet_cell(str(cell)) for cell in row])
    return file.getvalue()


def _csv_row(
    outcome: Outcome, verdict: Verdict | None, rank: int, provenance: Provenance
) -> Iterator[object]:
    item = outcome.item
    yield from (item.file, item.place, item.id, item.digest, item.title)
    yield from (item.grade, item.subject)
    if verdict is None:
        yield from ("", "none", *[""] * 10)
    else:
        pair = verdict.pair
        yield from (rank, verdict.status, verdict.decided_by)
        yield from ("" if value is None else value for value in (pair.probability, pair.score))
        yield from (pair.basis, pair.code, pair.id, pair.grades, pair.jurisdiction)
        yield from (pair.standard_set, pair.statement)
    yield "; ".join(outcome.notes)
    yield from (provenance.catalog, provenance.model, provenance.settings)
    yield provenance.inputs[item.file]


def _markdown(report: AlignmentReport) -> str:
    lines = [
        "# Alignment report",
        "",
        *(f"- {_escaped(line)}" for line in summary_lines(report)),
        "",
    ]
    for outcome in report.outcomes:
        item = outcome.item
        lines += [f"## {_escaped(item.title)}", "", f"File: {_escaped(item.where)}", ""]
        if outcome.verdicts:
            lines += ["| standard | text | probability | status |", "|---|---|---|---|"]
            lines += [_markdown_row(verdict) for verdict in outcome.verdicts]
        else:
            lines.append("No standard was found.")
        lines += ["", *(f"- {_escaped(note)}" for note in outcome.notes), ""]
    lines += ["## Digests (SHA-256)", "", "| of | digest |", "|---|---|"]
    lines += [f"| {_escaped(name)} | {digest} |" for name, digest in digests(report.provenance)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _markdown_row(verdict: Verdict) -> str:
    pair = verdict.pair
    cells = (
        f"{pair.code or pair.id} ({pair.jurisdiction})",
        pair.statement,
        probability_text(pair.probability),
        status_text(verdict),
    )
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    """Return *text* for the middle of a line of Markdown, without links, HTML and other marks."""
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKS.sub(r"\\\1", line)
