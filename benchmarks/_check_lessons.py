"""Compose lessons with codes and seeded faults, for `check_alignment.py`.

Nothing here knows how the tool finds codes: a lesson is put together from parts, and the place of
each code is known because the composer wrote it there.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from _check_lookalikes import lookalikes

from standards_mcp_catalog import StandardRecord

FAULTS = (
    "wrong_grade", "wrong_subject", "other_jurisdiction", "retired", "misquoted", "unknown",
    "not_loaded",
)  # fmt: skip
FAULTS_PER_LESSON = 5
FORMATS = ("line", "list", "table", "prose", "html list", "html table", "quoted", "steps")
_LONG = ("CCSS.Math.Content.", "CCSS.ELA-Literacy.", "CCSS.Math.Practice.")
_MARK = "\x00"


@dataclass
class Written:
    """A code in a lesson: its text, the status that is right, and the text beside it."""

    text: str
    status: str
    words: str = ""
    start: int = 0


@dataclass
class Lesson:
    """A lesson with the arguments of the call and the codes in it, in their order."""

    text: str
    arguments: dict[str, str]
    codes: list[Written] = field(default_factory=list)


class Composer:
    """Composes lessons from the records of a catalog."""

    def __init__(self, records: Iterable[StandardRecord], seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  - repeatable, not secret
        self._by_code = defaultdict[str, list[StandardRecord]](list)
        for record in records:
            if record.statement_notation and record.education_levels:
                self._by_code[bare(record.statement_notation)].append(record)
        self._codes = sorted(code for code in self._by_code if code.count(".") + code.count("-") > 1)
        self._retired = {
            code for code in self._codes
            if any(each.publication_status == "Superseded" for each in self._by_code[code])
        }  # fmt: skip

    def lessons(self, count: int) -> list[Lesson]:
        """Return lessons in turn of format and subject."""
        return [self._lesson(FORMATS[number % len(FORMATS)]) for number in range(count)]

    def _lesson(self, form: str) -> Lesson:
        pick = self._random
        subject = pick.choice(
            ("Mathematics", "English Language Arts", "Science", "Social Studies", "Computer Science")
        )
        grade = pick.choice(("K", "01", "02", "03", "04", "05", "06", "07", "08"))
        place = pick.choice(("", "", "Aland", "Aland", "Common Core"))
        if subject not in ("Mathematics", "English Language Arts") and place == "Common Core":
            place = ""
        in_argument, has_subject = pick.random() < 0.5, pick.random() < 0.6
        allowed = set(FAULTS)
        allowed -= set() if has_subject else {"wrong_subject"}
        allowed -= set() if place else {"other_jurisdiction"}
        allowed -= {"retired"} if place == "Common Core" else set()
        allowed -= {"misquoted"} if place == "Common Core" or form == "line" else set()
        scope = (grade, subject if has_subject else "", place)
        weights = sorted(allowed)
        kinds = [pick.choice(weights) for _ in range(FAULTS_PER_LESSON)] + ["ok"] * pick.randint(2, 5)
        pick.shuffle(kinds)
        codes, taken = list[Written](), set[str]()
        for kind in kinds:
            written = self._written(kind, scope, subject, taken, form)
            while written is None and kind != "ok":  # no code is left for this fault
                written = self._written(pick.choice(weights), scope, subject, taken, form)
            codes += [written] if written else []
        arguments = {"jurisdiction": place} if place else {}
        arguments |= {"subject": subject} if has_subject else {}
        arguments |= {"grade": grade.removeprefix("0")} if in_argument else {}
        head = "" if in_argument else self._grade_line(grade)
        return _assembled(form, head, codes, arguments, pick)

    def _grade_line(self, grade: str) -> str:
        name = "Kindergarten" if grade == "K" else f"Grade {int(grade)}"
        return self._random.choice((f"{name}\n", f"Grade level: {name.removeprefix('Grade ')}\n", f"A lesson for {name.lower()}\n"))

    def _written(
        self, kind: str, scope: tuple[str, str, str], subject: str, taken: set[str], form: str
    ) -> Written | None:
        if kind in ("unknown", "not_loaded"):
            make = self._unknown if kind == "unknown" else self._not_loaded
            for _ in range(50):
                text = make(scope, subject)
                if text not in taken:
                    taken.add(text)
                    return Written(text, kind, self._note())
            return None
        for _ in range(4_000):
            code = self._random.choice(self._codes)
            if code in taken or self._status(code, scope) != ("ok" if kind == "misquoted" else kind):
                continue
            if kind == "wrong_grade" and self._by_code[code][0].subject != subject:
                continue
            official = [each for each in self._by_code[code] if each.text_status == "official"]
            if kind == "misquoted" and (len(official) != 1 or len(self._by_code[code]) > 1):
                continue
            taken.add(code)
            text = self._spelled(code)
            if kind == "misquoted":
                return Written(text, kind, self._changed(official[0].description))
            is_quoted = len(official) == 1 and form != "line" and self._random.random() < 0.5
            words = self._kept(official[0].description) if is_quoted else self._note(official)
            return Written(text, kind, words)
        return None

    def _status(self, code: str, scope: tuple[str, str, str]) -> str:
        """Return the right status of an existing code, or "" if several are right."""
        grade, subject, place = scope
        results = set[str]()
        records = self._by_code[code]
        titles = {"Aland": "Aland", "Common Core": "Common Core State Standards", "": ""}
        inside = [each for each in records if place and each.jurisdiction_title == titles[place]]
        for each in inside or records:
            faults = [
                name
                for name, is_wrong in (
                    ("retired", code in self._retired),
                    ("other_jurisdiction", bool(place) and not inside),
                    ("wrong_subject", bool(subject) and each.subject != subject),
                    ("wrong_grade", grade not in each.education_levels),
                )
                if is_wrong
            ]
            # One fault at a time, so that the right status does not depend on an order.
            results.add("" if len(faults) > 1 else faults[0] if faults else "ok")
        return results.pop() if len(results) == 1 else ""

    def _spelled(self, code: str) -> str:
        """Return one of the spellings that teachers use for a code."""
        record = self._by_code[code][0]
        options = [code, code]
        notation = record.statement_notation or ""
        if notation.startswith(_LONG):
            options += [notation, notation.upper()]
            parts = code.split(".")
            if len(parts) == 4 and parts[0].isdigit() and parts[2] in "ABCD":  # noqa: PLR2004
                options += [".".join((*parts[:2], parts[3])), code.lower()]
        return self._random.choice(options)

    def _unknown(self, scope: tuple[str, str, str], subject: str) -> str:
        pick, grade = self._random, scope[0].removeprefix("0")
        number = pick.randint(1, 8)
        options = {
            "Mathematics": (
                f"{number}.NF.A.{pick.randint(4, 9)}", f"{number}.OA.{pick.choice('AB')}.{pick.randint(10, 19)}",
                f"CCSS.Math.Content.{number}.MD.B.{pick.randint(12, 20)}", f"{pick.randint(1, 2)}.NF.A.1",
                f"MA.{number}.1.{pick.randint(10, 40)}",
            ),
            "English Language Arts": (
                f"RL.{number}.{pick.randint(11, 20)}", f"W.{number}.{pick.randint(11, 15)}", f"EN.{number}.2.{pick.randint(10, 40)}",
                f"CCSS.ELA-Literacy.RI.{number}.{pick.randint(12, 20)}",
            ),
            "Science": (
                f"{pick.randint(1, 5)}-PS{pick.randint(1, 4)}-{pick.randint(7, 12)}", f"MS-LS{pick.randint(1, 4)}-{pick.randint(11, 19)}",
                f"SCI.{number}.1.{pick.randint(10, 40)}", f"{pick.randint(1, 5)}-PS{pick.randint(5, 9)}-1",
            ),
            "Social Studies": (f"SS.{number}.1.{pick.randint(10, 40)}", f"D2.Eco.{pick.randint(30, 60)}.3-5", f"D2.His.{pick.randint(30, 60)}.6-8"),
            "Computer Science": (f"CS.{number}.2.{pick.randint(10, 40)}", f"1B-AP-{pick.randint(60, 90)}", f"2-DA-{pick.randint(60, 90)}"),
        }  # fmt: skip
        del grade
        while True:
            text = pick.choice(options[subject])
            parts = bare(text).split(".")
            # The cluster letter may be left out, so the code without it must be missing, too.
            short = ".".join((*parts[:2], parts[3])) if len(parts) == 4 else ""  # noqa: PLR2004
            numbers = {".".join((*each.split(".")[:2], each.split(".")[3])) for each in self._by_code if each.count(".") == 3}  # noqa: E501, PLR2004
            if bare(text) not in self._by_code and (not short or not text[0].isdigit() or short not in numbers):
                return text

    def _not_loaded(self, scope: tuple[str, str, str], subject: str) -> str:
        pick, number = self._random, self._random.randint(1, 8)
        del scope, subject
        return pick.choice((
            f"§111.{pick.randint(2, 30)}(b)({number})(A)", f"TEKS {number}.{pick.randint(1, 9)}A", f"MA.{number}.FR.1.{pick.randint(1, 4)}",
            f"ELA.{number}.R.1.{pick.randint(1, 4)}", f"NY-{pick.randint(3, 5)}.NF.{pick.randint(1, 2)}", f"SC.{number}.P.8.{pick.randint(1, 4)}",
            f"SOL {number}.{pick.randint(1, 9)}", f"MAFS.{number}.NBT.1.{pick.randint(1, 3)}",
        ))  # fmt: skip

    def _kept(self, official: str) -> str:
        """Return an official text as teachers copy it: whole, or its first part."""
        words = official.rstrip(".").split()
        return self._random.choice((
            official, official.rstrip("."), official.upper(), " ".join(words[: max(7, len(words) // 2)]),
            official.replace(",", ""), f"\u201c{official}\u201d", official.replace(" ", "  ", 3),
        ))  # fmt: skip

    def _changed(self, official: str) -> str:
        """Return an official text with a fault in its wording."""
        pick, words = self._random, official.rstrip(".").split()
        place = pick.randint(2, len(words) - 3)
        kind = pick.choice(("replaced", "dropped", "inserted", "swapped", "negated", "first", "two"))
        if kind in ("replaced", "two"):
            words[place] = "seven"
        if kind == "two":
            words[-2] = "harder"
        if kind == "first":
            words[0] = "Memorize"
        if kind == "dropped":
            del words[place]
        if kind == "inserted":
            words.insert(place, "quickly")
        if kind == "negated":
            words.insert(place, "not")
        if kind == "swapped":
            while words[place].casefold() == words[place + 1].casefold():
                place = pick.randint(2, len(words) - 3)
            words[place], words[place + 1] = words[place + 1], words[place]
        return f"{' '.join(words)}."

    def _note(self, official: Sequence[StandardRecord] = ()) -> str:
        """Return a remark on a standard, which may have some of its words."""
        if official and self._random.random() < 0.3:
            things = official[0].description.split(" ")[1:7]
            return f"today we look at {' '.join(things)} together"
        return self._random.choice((
            "", "", "practice with partners", "warm-up and exit ticket", "first look at the idea on day 1",
            "students show their work on the board and talk about it", "small groups rotate every ten minutes",
        ))  # fmt: skip


def bare(code: str) -> str:
    """Return a code without the long beginning of the Common Core, in capital letters."""
    for start in _LONG:
        if code.upper().startswith(start.upper()):
            return code[len(start) :].upper()
    return code.upper()


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
    "What did you notice in the 2nd round, and why?", "Which of the 3 answers is the best one?",
    "How would you explain this to a friend in 1 or 2 sentences?", "What changes if we use 12 instead of 10?",
)  # fmt: skip
_MATERIALS = (
    "Materials: 24 cups, 3.5-oz bags, markers", "Time: 45 minutes, 8:15-9:00", "Room 12, bring the MP3 player",
    "Supplies from kit A-12-B3, version 2.1", "Homework: pages 34-36, due 4/12/2024",
)  # fmt: skip


def _assembled(
    form: str, head: str, codes: Sequence[Written], arguments: dict[str, str], pick: random.Random
) -> Lesson:
    """Return the lesson; each code is written between marks, which are then cut out."""
    parts = [head, *(_paragraph(pick) for _ in range(4))]
    marked = [f"{_MARK}{each.text}{_MARK}" for each in codes]
    if form == "line":
        label = pick.choice(("Standards:", "Standards Addressed:", "Standard(s):", "CCSS and state standards:", "**Standards:**"))
        parts.append(f"{label} {pick.choice((', ', '; ')).join(marked)}")
    elif form == "list":
        parts.append(pick.choice(("## Standards", "Standards", "Standards covered:")))
        bullet, joint = pick.choice("-*\u2022"), pick.choice((": ", " - ", " \u2013 ", " "))
        strong = pick.choice(("", "**"))
        lines = [f"{bullet} {strong}{mark}{strong}{joint if each.words else ''}{each.words}" for each, mark in zip(codes, marked, strict=True)]
        parts.append("\n".join(lines))
    elif form == "table":
        rows = [f"| {number} | {mark} | {each.words} |" for number, (each, mark) in enumerate(zip(codes, marked, strict=True), 1)]
        parts.append("\n".join(("| Day | Standard | Text |", "|---|---|---|", *rows)))
    elif form == "prose":
        for each, mark in zip(codes, marked, strict=True):
            if each.words:
                parts.append(f"{_ended(each.words)} This is standard {mark}.")
            else:
                other = pick.choice(lookalikes()) if pick.random() < 0.3 else pick.choice(_QUESTIONS)
                parts.append(f"{pick.choice(_ACTIVITIES).rstrip('.')} ({mark}). {other}")
    elif form == "html list":
        lines = [f"<li><strong>{_split(mark, pick)}</strong>{'&nbsp;&ndash; ' if each.words else ''}{each.words}</li>" for each, mark in zip(codes, marked, strict=True)]
        parts = [f"<p>{each}</p>" for each in parts if each]
        parts.append(f"<h2>Standards</h2>\n<ul>{''.join(lines)}</ul>")
    elif form == "html table":
        rows = [f"<tr><td>{_split(mark, pick)}</td><td>{each.words}</td></tr>" for each, mark in zip(codes, marked, strict=True)]
        parts = [f"<p>{each}</p>" for each in parts if each]
        parts.append(f"<table><tr><th>Standard</th><th>Text</th></tr>{''.join(rows)}</table>")
    elif form == "quoted":
        for each, mark in zip(codes, marked, strict=True):
            quoted = f"\u201c{each.words.strip(chr(0x201C) + chr(0x201D))}\u201d ({mark})" if each.words else f"aligned to {mark}"
            parts.append(f"In this part students work on {quoted}.")
    else:
        lines = [f"{number}. {pick.choice(_ACTIVITIES)} [{mark}]{' ' if each.words else ''}{each.words}" for number, (each, mark) in enumerate(zip(codes, marked, strict=True), 1)]
        parts.append("Steps and standards\n" + "\n".join(lines))
    end = pick.choice(_MATERIALS)
    parts += [f"<p>{end}</p>" if form.startswith("html") else end]
    text, places = _without_marks("\n\n".join(part for part in parts if part))
    for each, start in zip(codes, places, strict=True):
        each.start = start
    return Lesson(text, arguments, list(codes))


def _paragraph(pick: random.Random) -> str:
    """Return a paragraph of a lesson without a code."""
    parts = (*pick.sample(_ACTIVITIES, 3), pick.choice(_QUESTIONS), pick.choice(lookalikes()))
    return " ".join(parts)


def _split(mark: str, pick: random.Random) -> str:
    """Return a code as word processors write it in HTML: some in two pieces, some with dashes."""
    if pick.random() < 0.3 and "." in mark:
        first, dot, rest = mark.partition(".")
        return f"<span>{first}{dot}</span><span>{rest}</span>"
    return mark.replace("-", "&#8209;") if pick.random() < 0.2 else mark


def _ended(words: str) -> str:
    return words if words.endswith((".", "\u201d")) else f"{words}."


def _without_marks(text: str) -> tuple[str, list[int]]:
    """Return a text without the marks around its codes, and the position of each code."""
    pieces = text.split(_MARK)
    places, length = [], 0
    for number, piece in enumerate(pieces):
        if number % 2:
            places.append(length)
        length += len(piece)
    return "".join(pieces), places
