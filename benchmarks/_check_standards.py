"""Standards of two invented states in own words, for `check_alignment.py`.

Aland and Borduria have official texts. Some of their codes are those of the Common Core or of each
other, and some of Aland's standards are retired.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator

from standards_mcp_catalog import StandardRecord

SUBJECTS = {
    "Mathematics": "MA",
    "English Language Arts": "EN",
    "Science": "SCI",
    "Social Studies": "SS",
    "Computer Science": "CS",
}
"""The subjects, with the beginning of their codes in Aland."""
GRADES = ("K", "01", "02", "03", "04", "05", "06", "07", "08")
_VERBS = {
    "Mathematics": ("Compare|Order|Estimate|Measure|Sort|Draw|Round|Double|Graph|Record"),
    "English Language Arts": (
        "Retell|Summarize|Annotate|Revise|Punctuate|Perform|Outline|Quote|Dictate|Edit"
    ),
    "Science": ("Observe|Predict|Model|Test|Diagram|Weigh|Classify|Track|Sketch|Investigate"),
    "Social Studies": ("Locate|Debate|Map|Interview|Trace|Rank|Explain|Chart|Contrast|Describe"),
    "Computer Science": (
        "Program|Debug|Trace|Encode|Sequence|Decompose|Simulate|Protect|Automate|Document"
    ),
}
_OBJECTS = {
    "Mathematics": (
        "unit fractions|lengths of ribbons|prices in a shop|angles of kites|"
        "bags of beans|areas of gardens|number patterns|times on clocks|"
        "heights of plants|teams of players"
    ),
    "English Language Arts": (
        "a folk tale|two letters|an opinion paragraph|a dialogue|a poem with refrain|"
        "a news report|a how-to guide|an interview|a family story|a short play"
    ),
    "Science": (
        "melting ice|shadows at noon|soil in jars|magnets and nails|bean roots|"
        "moon phases|owl pellets|paper bridges|sound in strings|rain in gauges"
    ),
    "Social Studies": (
        "a town council|old trade routes|river settlements|a local museum|"
        "harvest customs|voting rules|street names|needs and wants|railway towns|"
        "rights and duties"
    ),
    "Computer Science": (
        "a maze robot|loops in a song|a quiz game|passwords|sorting cards|"
        "a weather chart|pixel pictures|message routes|a chat program|sensor readings"
    ),
}
_MEANS = (
    "by drawing at least two pictures that show the same idea",
    "with tables and labels that another student can check",
    "and give one reason that comes from the evidence",
    "using tools that fit the task and naming each of them",
    "in small groups that agree on a common rule first",
    "and say how the result would change with other starting values",
    "with words, numbers and symbols that belong together",
    "before and after new information is added by a partner",
)
_ENDS = (
    "in situations from daily life",
    "for an audience outside of the classroom",
    "without help from the teacher",
    "and correct mistakes that others point out",
    "over a period of several days",
)


def records() -> list[StandardRecord]:
    """Return the standards of both states."""
    return [*_aland(), *_borduria()]


def _aland() -> Iterator[StandardRecord]:
    for subject, start in SUBJECTS.items():
        for grade in GRADES:
            name = grade.removeprefix("0")
            for strand in (1, 2):
                for number in (1, 2, 3):
                    code = f"{start}.{name}.{strand}.{number}"
                    yield _record("Aland", subject, grade, code)
            for number in (1, 2):
                successor = f"{start}.{name}.1.{number}"
                yield _record("Aland", subject, grade, f"{start}.{name}.8.{number}", successor)
    for code in ("3.NF.A.1", "4.NF.A.1", "4.NF.A.2", "5.NF.B.3", "2.OA.A.1", "6.RP.A.1"):
        yield _record("Aland", "Mathematics", f"0{code[0]}", code)


def _borduria() -> Iterator[StandardRecord]:
    for subject, start in SUBJECTS.items():
        for grade in GRADES:
            name = grade.removeprefix("0")
            # The codes of the first strand are those of Aland, with other texts.
            yield _record("Borduria", subject, grade, f"{start}.{name}.1.1")
            for number in (4, 5, 6):
                yield _record("Borduria", subject, grade, f"B{start}.{name}.{number}")
    for code in ("3.NF.A.1", "4.NF.A.1"):
        yield _record("Borduria", "Mathematics", f"0{code[0]}", code)


def _record(place: str, subject: str, grade: str, code: str, successor: str = "") -> StandardRecord:
    identifier = _identifier(place, code)
    text = _text(place, subject, code)
    retired = {"publication_status": "Superseded", "replaced_by": [_identifier(place, successor)]}
    return StandardRecord.from_dict({
        "_id": identifier, "content": f"Depth 0 ({code}): {text}", "description": text,
        "standard_set_id": f"{place}-{subject}-{grade}", "standard_set_title": f"{place} {subject}",
        "subject": subject, "education_levels": [grade], "jurisdiction_id": place,
        "jurisdiction_title": place, "statement_notation": code, "text_status": "official",
        "publication_status": "Published", **(retired if successor else {}),
    })  # fmt: skip


def _identifier(place: str, code: str) -> str:
    return hashlib.sha256(f"{place} {code}".encode()).hexdigest()[:32].upper()


_used = set[str]()


def _text(place: str, subject: str, code: str) -> str:
    source = random.Random(f"{place} {code}")  # noqa: S311  - repeatable, not secret
    while True:
        verb = source.choice(_VERBS[subject].split("|"))
        thing, other = source.sample(_OBJECTS[subject].split("|"), 2)
        parts = (f"{verb} {thing} and {other}", source.choice(_MEANS), source.choice(_ENDS))
        text = f"{' '.join(parts)}."
        if text not in _used:
            _used.add(text)
            return text
