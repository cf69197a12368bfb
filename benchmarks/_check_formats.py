"""Write lessons in the formats of teachers, for `check_alignment.py`.

A code is written between marks, which are cut out at the end: so its place is known.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_MARK = "\x00"
_LOOKALIKES = Path(__file__).parent / "check_alignment_lookalikes.txt"
_ACTIVITIES = (
    "Students fold paper strips into equal parts and compare them with a partner.",
    "The class reads a short story and talks about how its main character changes.",
    "Pairs roll marbles down a ramp and record how far each one goes.",
    "Groups draw a map of the school and mark three places that need care.",
    "Everyone writes a list of steps for a robot that sorts socks by colour.",
    "We count how many cars pass the gate in 5 minutes and draw a bar graph.",
    "Each child explains one choice to the group, and the others ask two questions.",
)
_QUESTIONS = (
    "What did you notice in the 2nd round, and why?",
    "Which of the 3 answers is the best one?",
    "How would you explain this to a friend in 1 or 2 sentences?",
    "What changes if we use 12 instead of 10?",
)
_ENDS = (
    "Materials: 24 cups, 3.5-oz bags, markers",
    "Time: 45 minutes, 8:15-9:00",
    "Room 12, bring the MP3 player",
    "Supplies from kit A-12-B3, version 2.1",
    "Homework: pages 34-36, due 4/12/2024",
)


@dataclass
class Written:
    """A code in a lesson: its text, the status that is right, and the words beside it."""

    text: str
    status: str
    words: str = ""
    start: int = 0

    @property
    def marked(self) -> str:
        return f"{_MARK}{self.text}{_MARK}"


@cache
def lookalikes() -> list[str]:
    """Return texts that only look as if they had codes."""
    lines = _LOOKALIKES.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def lesson_text(form: str, head: str, codes: Sequence[Written], pick: random.Random) -> str:
    """Return a lesson with these codes, and set their places in it."""
    parts = [head, *(_paragraph(pick) for _ in range(4))]
    end = pick.choice(_ENDS)
    if form.startswith("html"):
        parts, end = [f"<p>{part}</p>" for part in parts if part], f"<p>{end}</p>"
    text = "\n\n".join(part for part in (*parts, FORMATS[form](codes, pick), end) if part)
    pieces, length = text.split(_MARK), 0
    written = iter(codes)
    for number, piece in enumerate(pieces):
        if number % 2:
            next(written).start = length
        length += len(piece)
    return "".join(pieces)


def _line(codes: Sequence[Written], pick: random.Random) -> str:
    label = pick.choice((
        "Standards:", "Standards Addressed:", "Standard(s):", "CCSS and state standards:",
        "**Standards:**",
    ))  # fmt: skip
    return f"{label} {pick.choice((', ', '; ')).join(each.marked for each in codes)}"


def _list(codes: Sequence[Written], pick: random.Random) -> str:
    head = pick.choice(("## Standards", "Standards", "Standards covered:"))
    bullet, joint = pick.choice("-*\u2022"), pick.choice((": ", " - ", " \u2013 ", " "))
    strong = pick.choice(("", "**"))
    lines = (
        f"{bullet} {strong}{each.marked}{strong}{joint if each.words else ''}{each.words}"
        for each in codes
    )
    return "\n".join((head, pick.choice(("", "\n")), *lines)).replace("\n\n\n", "\n\n")


def _table(codes: Sequence[Written], pick: random.Random) -> str:
    del pick
    rows = (f"| {day} | {each.marked} | {each.words} |" for day, each in enumerate(codes, 1))
    return "\n".join(("| Day | Standard | Text |", "|---|---|---|", *rows))


def _prose(codes: Sequence[Written], pick: random.Random) -> str:
    parts = list[str]()
    for each in codes:
        if each.words:
            stop = "" if each.words.endswith((".", "\u201d")) else "."
            parts.append(f"{each.words}{stop} This is standard {each.marked}.")
        else:
            others = lookalikes() if pick.random() < 0.3 else _QUESTIONS
            activity = pick.choice(_ACTIVITIES).rstrip(".")
            parts.append(f"{activity} ({each.marked}). {pick.choice(others)}")
    return "\n\n".join(parts)


def _html_list(codes: Sequence[Written], pick: random.Random) -> str:
    items = (
        f"<li><strong>{_in_html(each, pick)}</strong>"
        f"{'&nbsp;&ndash; ' if each.words else ''}{each.words}</li>"
        for each in codes
    )
    return f"<h2>Standards</h2>\n<ul>{''.join(items)}</ul>"


def _html_table(codes: Sequence[Written], pick: random.Random) -> str:
    rows = (f"<tr><td>{_in_html(each, pick)}</td><td>{each.words}</td></tr>" for each in codes)
    return f"<table><tr><th>Standard</th><th>Text</th></tr>{''.join(rows)}</table>"


def _quoted(codes: Sequence[Written], pick: random.Random) -> str:
    del pick
    parts = (
        f"\u201c{_bare(each)}\u201d ({each.marked})" if each.words else f"aligned to {each.marked}"
        for each in codes
    )
    return "\n\n".join(f"In this part students work on {part}." for part in parts)


def _steps(codes: Sequence[Written], pick: random.Random) -> str:
    lines = (
        f"{number}. {pick.choice(_ACTIVITIES)} [{each.marked}] {each.words}".rstrip()
        for number, each in enumerate(codes, 1)
    )
    return "\n".join(("Steps and standards", *lines))


FORMATS: Mapping[str, Callable[[Sequence[Written], random.Random], str]] = {
    "line": _line,
    "list": _list,
    "table": _table,
    "prose": _prose,
    "html list": _html_list,
    "html table": _html_table,
    "quoted": _quoted,
    "steps": _steps,
}


def _paragraph(pick: random.Random) -> str:
    """Return a paragraph of a lesson without a code."""
    parts = (*pick.sample(_ACTIVITIES, 3), pick.choice(_QUESTIONS), pick.choice(lookalikes()))
    return " ".join(parts)


def _bare(code: Written) -> str:
    return code.words.strip("\u201c\u201d")


def _in_html(code: Written, pick: random.Random) -> str:
    """Return a code as word processors write it: some in two pieces, some with odd dashes."""
    if pick.random() < 0.3 and "." in code.text:
        first, dot, rest = code.marked.partition(".")
        return f"<span>{first}{dot}</span><span>{rest}</span>"
    return code.marked.replace("-", "&#8209;") if pick.random() < 0.2 else code.marked
