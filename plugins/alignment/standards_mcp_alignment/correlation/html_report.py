"""Write a report as one HTML file, without scripts and without anything from the network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from .outcomes import AlignmentReport, Outcome, Verdict
from .report_texts import digests, probability_text, status_text, summary_lines

_STYLE: Final = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
h2 { font-size: 1.15rem; margin: 2rem 0 0; }
p { margin: .3rem 0; }
.place, .note { color: #555; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { border: 1px solid #ccc; padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: #f2f2f2; }
.accepted td { background: #e9f6ec; }
.rejected td, .replaced td { color: #666; text-decoration: line-through; }
code { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  body { color: #e8e8e8; background: #161616; }
  .place, .note { color: #b0b0b0; }
  th { background: #2a2a2a; }
  .accepted td { background: #17341f; }
  .rejected td, .replaced td { color: #a0a0a0; }
}
"""
_HEAD: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Alignment report</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>Alignment report</h1>
"""
HTML_BEGINNING: Final = _HEAD.partition("<style>")[0]
_TAIL: Final = "</main>\n</body>\n</html>\n"


def html_report(report: AlignmentReport) -> str:
    """Return the report as an HTML document; every text is escaped."""
    lines = [_HEAD.format(style=_STYLE), "<ul>"]
    lines += [f"<li>{_text(line)}</li>" for line in summary_lines(report)]
    lines.append("</ul>")
    for outcome in report.outcomes:
        lines += _section(outcome)
    rows = [(name, digest) for name, digest in digests(report.provenance)]
    lines += ["<h2>Digests (SHA-256)</h2>", "<table>", _header(("of", "digest"))]
    lines += [
        f"<tr><td>{_text(name)}</td><td><code>{digest}</code></td></tr>" for name, digest in rows
    ]
    lines += ["</table>", _TAIL]
    return "\n".join(lines)


def _section(outcome: Outcome) -> Iterable[str]:
    item = outcome.item
    yield f'<h2>{_text(item.title)}</h2>\n<p class="place">{_text(item.where)}</p>'
    if outcome.verdicts:
        yield "<table>"
        yield _header(("standard", "text", "probability", "status"))
        yield from map(_row, outcome.verdicts)
        yield "</table>"
    else:
        yield "<p>No standard was found.</p>"
    for note in outcome.notes:
        yield f'<p class="note">{_text(note)}</p>'


def _header(names: Iterable[str]) -> str:
    cells = (f'<th scope="col">{name}</th>' for name in names)
    return f"<tr>{''.join(cells)}</tr>"


def _row(verdict: Verdict) -> str:
    pair = verdict.pair
    cells = (
        f"<strong>{_text(pair.code or pair.id)}</strong><br>{_text(pair.jurisdiction)}",
        _text(pair.statement),
        probability_text(pair.probability),
        _text(status_text(verdict)),
    )
    row = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="{verdict.status}">{row}</tr>'


def _text(text: str) -> str:
    # A control character is no part of HTML.
    return escape("".join(char if char.isprintable() else " " for char in text))
