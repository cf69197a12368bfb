"""Check the texts of the starter set.

usage: python scripts/check_starter.py [--official RECORDS] [--codes CODES]

RECORDS is a file of records with the official wording, one JSON object a line, .gz or not: no text
of ours may share seven consecutive words with any of theirs, and grades and parents must agree.
CODES is a CSV file with a column `notation`: the starter set must hold each of its codes once.
Neither file is part of this project. Exit code 1 when anything is wrong.
"""

import argparse
import csv
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.starter import starter_records

SHORTEST, LONGEST = 12, 60
RUN = 7
FRAMEWORK = "CCSS."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--official", type=Path)
    parser.add_argument("--codes", type=Path)
    arguments = parser.parse_args()
    records = starter_records()
    problems = [*length_problems(records), *duplicates(records)]
    if arguments.codes:
        problems += code_problems(records, arguments.codes)
    if arguments.official:
        problems += official_problems(records, list(official_records(arguments.official)))
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(records)} records, {len(problems)} problems")
    return 1 if problems else 0


def length_problems(records: list[StandardRecord]) -> Iterator[str]:
    for record in records:
        words = len(record.description.split())
        if not SHORTEST <= words <= LONGEST:
            yield f"{record.statement_notation}: {words} words"


def duplicates(records: list[StandardRecord]) -> Iterator[str]:
    for name in ("id", "description", "statement_notation"):
        counts = Counter(getattr(record, name) for record in records)
        yield from (f"{count} records have the same {name}: {value}"
                    for value, count in counts.items() if count > 1)  # fmt: skip


def code_problems(records: list[StandardRecord], codes: Path) -> Iterator[str]:
    ours = {record.statement_notation for record in records}
    with codes.open(encoding="utf-8", newline="") as file:
        theirs = {row["notation"] for row in csv.DictReader(file)}
    yield from (f"{code}: missing" for code in sorted(theirs - ours))


def official_problems(records: list[StandardRecord], official: list[dict]) -> Iterator[str]:
    known_runs = {run for record in official for run in runs(record["description"])}
    by_id = {record["_id"]: record for record in official}
    for record in records:
        if shared := runs(record.description) & known_runs:
            yield f"{record.statement_notation}: official words: {' '.join(min(shared))}"
        if (theirs := by_id.get(record.id)) is None:
            yield f"{record.statement_notation}: its id is not among the official records"
            continue
        for name in ("statement_notation", "education_levels", "parent_id"):
            ours, expected = getattr(record, name), theirs.get(name)
            if ours != (tuple(expected) if isinstance(expected, list) else expected):
                yield f"{record.statement_notation}: {name} is {ours}, officially {expected}"


def official_records(path: Path) -> Iterator[dict]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if (record.get("statement_notation") or "").startswith(FRAMEWORK):
                yield record


def runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(
        r"[a-z0-9]+(?:'[a-z]+)?", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


if __name__ == "__main__":
    sys.exit(main())
