"""Compose lessons with codes and seeded faults, for `check_alignment.py`.

Nothing here knows how the tool finds codes: a lesson is put together from parts, and the place of
each code is known because the composer wrote it there.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle

from _check_formats import FORMATS, Written, lesson_text

from standards_mcp_catalog import StandardRecord

FAULTS = (
    "wrong_grade",
    "wrong_subject",
    "other_jurisdiction",
    "retired",
    "misquoted",
    "unknown",
    "not_loaded",
)
FAULTS_PER_LESSON = 5
_LONG = ("CCSS.Math.Content.", "CCSS.ELA-Literacy.", "CCSS.Math.Practice.")


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
        self._codes = sorted(
            code for code in self._by_code if code.count(".") + code.count("-") > 1
        )
        self._retired = {
            code
            for code in self._codes
            if any(each.publication_status == "Superseded" for each in self._by_code[code])
        }

    def lessons(self, count: int) -> list[Lesson]:
        """Return lessons in turn of format and subject."""
        return [self._lesson(form) for form, _ in zip(cycle(FORMATS), range(count), strict=False)]

    def _lesson(self, form: str) -> Lesson:
        pick = self._random
        subject = pick.choice(
            (
                "Mathematics",
                "English Language Arts",
                "Science",
                "Social Studies",
                "Computer Science",
            )
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
        kinds = [pick.choice(weights) for _ in range(FAULTS_PER_LESSON)] + ["ok"] * pick.randint(
            2, 5
        )
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
        return Lesson(lesson_text(form, head, codes, pick), arguments, codes)

    def _grade_line(self, grade: str) -> str:
        name = "Kindergarten" if grade == "K" else f"Grade {int(grade)}"
        return self._random.choice(
            (
                f"{name}\n",
                f"Grade level: {name.removeprefix('Grade ')}\n",
                f"A lesson for {name.lower()}\n",
            )
        )

    def _written(
        self, kind: str, scope: tuple[str, str, str], subject: str, taken: set[str], form: str
    ) -> Written | None:
        if kind in ("unknown", "not_loaded"):
            text = self._unknown(subject) if kind == "unknown" else self._not_loaded()
            while text in taken:
                text = self._unknown(subject) if kind == "unknown" else self._not_loaded()
            taken.add(text)
            return Written(text, kind, self._note())
        for _ in range(4_000):
            code = self._random.choice(self._codes)
            if code not in taken and self._fits(code, kind, scope, subject):
                taken.add(code)
                return Written(self._spelled(code), kind, self._words(code, kind, form))
        return None

    def _fits(self, code: str, kind: str, scope: tuple[str, str, str], subject: str) -> bool:
        """Return True if a code can have a fault, or none if *kind* is ok."""
        records = self._by_code[code]
        if kind == "misquoted" and (len(records) > 1 or records[0].text_status != "official"):
            return False
        if kind == "wrong_grade" and records[0].subject != subject:
            return False
        return self._status(code, scope) == ("ok" if kind == "misquoted" else kind)

    def _words(self, code: str, kind: str, form: str) -> str:
        """Return the words beside a code: a quotation, a changed one, or a remark."""
        official = [each for each in self._by_code[code] if each.text_status == "official"]
        if kind == "misquoted":
            return self._changed(official[0].description)
        is_quoted = len(official) == 1 and form != "line" and self._random.random() < 0.5
        return self._kept(official[0].description) if is_quoted else self._note(official)

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
            if len(parts) == 4 and parts[0].isdigit() and parts[2] in "ABCD":
                options += [".".join((*parts[:2], parts[3])), code.lower()]
        return self._random.choice(options)

    def _unknown(self, subject: str) -> str:
        pick = self._random
        number = pick.randint(1, 8)
        options = {
            "Mathematics": (
                f"{number}.NF.A.{pick.randint(4, 9)}",
                f"{number}.OA.{pick.choice('AB')}.{pick.randint(10, 19)}",
                f"CCSS.Math.Content.{number}.MD.B.{pick.randint(12, 20)}",
                f"{pick.randint(1, 2)}.NF.A.1",
                f"MA.{number}.1.{pick.randint(10, 40)}",
            ),
            "English Language Arts": (
                f"RL.{number}.{pick.randint(11, 20)}",
                f"W.{number}.{pick.randint(11, 15)}",
                f"EN.{number}.2.{pick.randint(10, 40)}",
                f"CCSS.ELA-Literacy.RI.{number}.{pick.randint(12, 20)}",
            ),
            "Science": (
                f"{pick.randint(1, 5)}-PS{pick.randint(1, 4)}-{pick.randint(7, 12)}",
                f"MS-LS{pick.randint(1, 4)}-{pick.randint(11, 19)}",
                f"SCI.{number}.1.{pick.randint(10, 40)}",
                f"{pick.randint(1, 5)}-PS{pick.randint(5, 9)}-1",
            ),
            "Social Studies": (
                f"SS.{number}.1.{pick.randint(10, 40)}",
                f"D2.Eco.{pick.randint(30, 60)}.3-5",
                f"D2.His.{pick.randint(30, 60)}.6-8",
            ),
            "Computer Science": (
                f"CS.{number}.2.{pick.randint(10, 40)}",
                f"1B-AP-{pick.randint(60, 90)}",
                f"2-DA-{pick.randint(60, 90)}",
            ),
        }
        while True:
            text = pick.choice(options[subject])
            parts = bare(text).split(".")
            # The cluster letter may be left out, so the code without it must be missing, too.
            short = ".".join((*parts[:2], parts[3])) if len(parts) == 4 else ""
            numbers = {
                ".".join((*each.split(".")[:2], each.split(".")[3]))
                for each in self._by_code
                if each.count(".") == 3
            }
            if bare(text) not in self._by_code and (
                not short or not text[0].isdigit() or short not in numbers
            ):
                return text

    def _not_loaded(self) -> str:
        pick, number = self._random, self._random.randint(1, 8)
        return pick.choice(
            (
                f"§111.{pick.randint(2, 30)}(b)({number})(A)",
                f"TEKS {number}.{pick.randint(1, 9)}A",
                f"MA.{number}.FR.1.{pick.randint(1, 4)}",
                f"ELA.{number}.R.1.{pick.randint(1, 4)}",
                f"NY-{pick.randint(3, 5)}.NF.{pick.randint(1, 2)}",
                f"SC.{number}.P.8.{pick.randint(1, 4)}",
                f"SOL {number}.{pick.randint(1, 9)}",
                f"MAFS.{number}.NBT.1.{pick.randint(1, 3)}",
            )
        )

    def _kept(self, official: str) -> str:
        """Return an official text as teachers copy it: whole, or its first part."""
        words = official.rstrip(".").split()
        return self._random.choice(
            (
                official,
                official.rstrip("."),
                official.upper(),
                " ".join(words[: max(7, len(words) // 2)]),
                official.replace(",", ""),
                f"\u201c{official}\u201d",
                official.replace(" ", "  ", 3),
            )
        )

    def _changed(self, official: str) -> str:
        """Return an official text with a fault in its wording."""
        pick, words = self._random, official.rstrip(".").split()
        place = pick.randint(2, len(words) - 3)
        while words[place].casefold() == words[place + 1].casefold():
            place = pick.randint(2, len(words) - 3)
        before, word, after = words[:place], words[place], words[place + 1 :]
        changed = {
            "replaced": [*before, "seven", *after],
            "dropped": [*before, *after],
            "inserted": [*before, "quickly", word, *after],
            "negated": [*before, "not", word, *after],
            "swapped": [*before, after[0], word, *after[1:]],
            "first": ["Memorize", *words[1:]],
            "two": [*before, "seven", *after[:-2], "harder", after[-1]],
        }
        return f"{' '.join(changed[pick.choice(list(changed))])}."

    def _note(self, official: Sequence[StandardRecord] = ()) -> str:
        """Return a remark on a standard, which may have some of its words."""
        if official and self._random.random() < 0.3:
            things = official[0].description.split(" ")[1:7]
            return f"today we look at {' '.join(things)} together"
        return self._random.choice(
            (
                "",
                "",
                "practice with partners",
                "warm-up and exit ticket",
                "first look at the idea on day 1",
                "students show their work on the board and talk about it",
                "small groups rotate every ten minutes",
            )
        )


def bare(code: str) -> str:
    """Return a code without the long beginning of the Common Core, in capital letters."""
    for start in _LONG:
        if code.upper().startswith(start.upper()):
            return code[len(start) :].upper()
    return code.upper()
