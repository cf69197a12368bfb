"""The standards that the benchmark searches, and the kinds of confusion between two of them.

    python benchmarks/alignment/corpus.py FOLDER

It writes two tables into FOLDER, both derived from the starter set:

`corpus.csv`     every standard and heading: code, subject, grade, domain, parent, text, and the
                 texts of the headings above it
`negatives.csv`  for each question the standards that are easily taken for the right one: siblings
                 under the same heading, and the same domain one grade lower and higher
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from standards_mcp_catalog.records import StandardRecord, ancestors_text
from standards_mcp_catalog.starter import starter_records
from standards_mcp_catalog.vocabulary.grades import grade_order

QUESTIONS: Final = Path(__file__).with_name("questions.csv")

_DOMAINS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"CCSS\.Math\.Content\.(?:\w\.|HS)(?P<domain>[A-Z]+)",
        r"CCSS\.Math\.(?P<domain>Practice)",
        r"CCSS\.ELA-Literacy\.(?P<domain>(?:CCRA\.)?[A-Z]+)",
        r"(?:K|\d|MS|HS|K-2|3-5)-(?P<domain>[A-Z]+\d)",  # NGSS: a core idea
        r"(?:1A|1B|2|3A|3B)-(?P<domain>[A-Z]+)-",  # CSTA: a concept
        r"(?P<domain>D\d(?:\.[A-Z][a-z]+)?)\.",  # C3: a dimension and its discipline
    )
)
# The Common Core calls the domains of high school by other letters.
_HIGH_SCHOOL: Final = {"A": "EE", "N": "NS", "S": "SP"}


class Kind(StrEnum):
    """Relation of a standard to the right one, closest first."""

    RIGHT = "right"
    LINE = "heading or part"
    SIBLING = "sibling"
    DOMAIN = "same domain"
    NEIGHBOUR = "neighbouring grade"
    ELSEWHERE = "elsewhere"


class Question(NamedTuple):
    """A question of the benchmark and the code of its standard."""

    id: str
    text: str
    code: str
    subject: str
    split: str


class Standard(NamedTuple):
    """A standard or heading.

    Attributes:
        levels: School grades: ``K``, ``01`` to ``12``.
        domain: The strand that continues from grade to grade, such as NF, RL, PS1 or D2.Eco.
        path: The codes from the root to this standard.
        context: The texts of the headings above it, the root first.
    """

    code: str
    subject: str
    levels: tuple[str, ...]
    domain: str
    path: tuple[str, ...]
    text: str
    context: str

    @property
    def grade(self) -> str:
        """The grades as a teacher writes them: ``3`` or ``6-8``."""
        ends = [level.lstrip("0") for level in (self.levels[0], self.levels[-1])]
        return ends[0] if len(self.levels) == 1 else "-".join(ends)

    @property
    def parent(self) -> str:
        """The code of the heading right above it, or an empty string."""
        return self.path[-2] if len(self.path) > 1 else ""

    @property
    def strand(self) -> tuple[str, str]:
        """Subject and domain, which are unique together."""
        return self.subject, self.domain


class Corpus:
    """All standards by their codes, and the relations between them."""

    def __init__(self, standards: Iterable[Standard]) -> None:
        self.standards = {standard.code: standard for standard in standards}

    def kind(self, right: str, code: str) -> Kind:
        """Return how *code* is related to the *right* one."""
        wanted, other = self.standards[right], self.standards[code]
        if right == code:
            return Kind.RIGHT
        if right in other.path or code in wanted.path:
            return Kind.LINE
        if wanted.strand != other.strand:
            return Kind.ELSEWHERE
        if wanted.levels == other.levels:
            # Without a heading, standards of one domain and grade are siblings.
            return Kind.SIBLING if wanted.parent == other.parent else Kind.DOMAIN
        bands = self._bands[wanted.strand]
        distance = bands.index(wanted.levels) - bands.index(other.levels)
        return Kind.NEIGHBOUR if abs(distance) == 1 else Kind.ELSEWHERE

    def negatives(self, right: str) -> Iterator[tuple[Kind, str]]:
        """Yield the standards that are easily taken for the *right* one, and how they differ."""
        for code in self.standards:
            kind = self.kind(right, code)
            if kind in (Kind.SIBLING, Kind.NEIGHBOUR):
                yield kind, code

    @cached_property
    def _bands(self) -> dict[tuple[str, str], list[tuple[str, ...]]]:
        """The grades that each strand has standards for, in the order of school."""
        bands = defaultdict[tuple[str, str], set[tuple[str, ...]]](set)
        for standard in self.standards.values():
            bands[standard.strand].add(standard.levels)
        return {
            strand: sorted(levels, key=lambda some: [grade_order(level) for level in some])
            for strand, levels in bands.items()
        }


def read_corpus() -> Corpus:
    """Return the standards of the starter set."""
    records = starter_records()
    codes = {record.id: _code(record) for record in records}
    return Corpus(_standard(record, codes) for record in records)


def read_questions(path: Path = QUESTIONS, split: str = "all") -> list[Question]:
    """Return the questions of a file, or of one split only."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Question(row["id"], row["question"], row["code"], row["subject"], row["split"])
            for row in csv.DictReader(file)
            if split in ("all", row["split"])
        ]


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


def domain_of(code: str) -> str:
    """Return the strand that a code belongs to.

    Raises:
        ValueError: The code has the form of none of the frameworks.
    """
    for pattern in _DOMAINS:
        if match := pattern.match(code):
            return _HIGH_SCHOOL.get(match["domain"], match["domain"])
    raise ValueError(f"no domain is known for {code!r}")


def _code(record: StandardRecord) -> str:
    return record.statement_notation or record.id


def _standard(record: StandardRecord, codes: dict[str, str]) -> Standard:
    code = _code(record)
    return Standard(
        code=code,
        subject=record.subject,
        levels=record.education_levels,
        domain=domain_of(code),
        path=(*(codes[id_] for id_ in record.ancestor_ids), code),
        text=record.description,
        context=ancestors_text(record.model_dump()).replace("\n", " "),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    corpus = read_corpus()
    columns = ("code", "subject", "grade", "domain", "parent", "text", "context")
    standards = corpus.standards.values()
    rows = ([getattr(standard, name) for name in columns] for standard in standards)
    write_table(folder / "corpus.csv", columns, rows)
    negatives = (
        (question.id, kind, code)
        for question in read_questions()
        for kind, code in corpus.negatives(question.code)
    )
    write_table(folder / "negatives.csv", ("id", "kind", "code"), negatives)
    print(f"{len(standards):,} standards and headings written to {folder / 'corpus.csv'}")


if __name__ == "__main__":
    main()
