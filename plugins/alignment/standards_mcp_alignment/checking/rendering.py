"""Write the answer of `check_alignment` as Markdown for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .envelope import AlignmentCheck, CheckedCode, Status

_NAMES: Final[dict[Status, str]] = {
    "ok": "ok",
    "wrong_grade": "wrong grade",
    "wrong_subject": "wrong subject",
    "other_jurisdiction": "other jurisdiction",
    "retired": "retired",
    "misquoted": "misquoted",
    "unknown": "unknown",
    "not_loaded": "not loaded",
}
_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#!~])")


def render(answer: AlignmentCheck) -> str:
    """Return the answer as Markdown. Foreign text in it has no markup."""
    parts = [answer["message"]]
    if answer["codes"]:
        rows = [_row(entry) for entry in answer["codes"]]
        parts.append(_table(("Code", "Status", "Note", "Nearest"), rows))
    if diffs := [_diff(entry) for entry in answer["codes"] if "diff" in entry]:
        parts += ["**Wording** ([-official-], {+lesson+}):".replace("[", "\\["), "\n".join(diffs)]
    if answer["suggestions"]:
        parts.append("**Standards for the parts without a code:**")
        parts.append("\n".join(_suggestions(answer)))
    return "\n\n".join(parts)


def _row(entry: CheckedCode) -> tuple[str, ...]:
    names = [entry["written"]]
    if entry["code"].casefold() != entry["written"].casefold():
        names.append(entry["code"])
    nearest = ", ".join(_plain(each["code"]) for each in entry["nearest"])
    times = f" ({len(entry['repeated']) + 1} times)" if "repeated" in entry else ""
    name = " = ".join(map(_plain, names))
    note = _plain(entry["note"]).replace("\\`", "`")  # the command that loads a family is code
    return f"{name}{times}", _NAMES[entry["status"]], note, nearest


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, tuple("---" for _ in head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _diff(entry: CheckedCode) -> str:
    return f"- {_plain(entry['code'])}: {_plain(entry.get('diff', ''))}"


def _suggestions(answer: AlignmentCheck) -> Iterable[str]:
    for each in answer["suggestions"]:
        yield f"- {_plain(each['passage'])}"
        for standard in each["standards"]:
            description = _plain(standard["description"])
            yield f"  - {_plain(standard['code'])} ({standard['score']:.2f}): {description}"


def _plain(text: str) -> str:
    """Return *text* as one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
