"""Check the texts of the starter set.

usage: python scripts/check_starter.py [--official RECORDS...] [--codes CODES]

RECORDS are files of records with the official wording, one JSON object a line, .gz or not. All that
is there of a jurisdiction counts if one of its ids is ours: no text of ours may share seven
consecutive words with any of these, every id of ours must be among them, and grades and parents
must agree. A record without a parent there may be part of a flat list, and agrees with any.
CODES is a CSV file with a column `notation`: the starter set must hold each of its codes once. Of
the columns `official_guid`, `case_uuid`, `asn_id`, `grades` (separated by commas) and `parent` (the
notation of the parent), those that are there and filled must agree; a code may have several lines.
Neither file is part of this project. Exit code 1 when anything is wrong.
"""

import argparse
import csv
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.starter import starter_records

SHORTEST, LONGEST = 12, 60
RUN = 7
# A text is readable whose phrases are short, whose words are mostly short, and which holds some of
# the little words that make sentences. The hardest of ours has 47, 35 % and 11 %.
LONGEST_PHRASE, LONG_WORD, MOST_LONG_WORDS, FEWEST_LITTLE_WORDS = 55, 10, 0.45, 0.08
LITTLE_WORD = re.compile(
    "a|about|an|and|are|as|at|be|by|each|for|from|have|how|if|in|into|is|it|like|of|on|one|or|other"
    "|than|that|the|their|them|they|this|to|two|what|when|which|who|with"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--official", type=Path, nargs="+")
    parser.add_argument("--codes", type=Path)
    arguments = parser.parse_args()
    records = starter_records()
    problems = [*length_problems(records), *duplicates(records), *readability_problems(records)]
    if arguments.codes:
        problems += code_problems(records, arguments.codes)
    if arguments.official:
        problems += official_problems(records, official_records(records, arguments.official))
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(records)} records, {len(problems)} problems")
    return 1 if problems else 0


def length_problems(records: list[StandardRecord]) -> Iterator[str]:
    for record in records:
        words = len(record.description.split())
        if not SHORTEST <= words <= LONGEST:
            yield f"{record.statement_notation}: {words} words"


def readability_problems(records: list[StandardRecord]) -> Iterator[str]:
    for record in records:
        words = re.findall(r"[a-z]+(?:['\u2019-][a-z]+)*", record.description.lower())
        phrases = re.findall(r"[^.!?;:]*[a-z][^.!?;:]*", record.description.lower())
        long_words = sum(len(word) >= LONG_WORD for word in words) / max(1, len(words))
        little_words = sum(bool(LITTLE_WORD.fullmatch(word)) for word in words) / max(1, len(words))
        if len(words) > LONGEST_PHRASE * len(phrases):
            yield f"{record.statement_notation}: more than {LONGEST_PHRASE} words in a phrase"
        if long_words > MOST_LONG_WORDS:
            yield f"{record.statement_notation}: {long_words:.0%} long words"
        if little_words < FEWEST_LITTLE_WORDS:
            yield f"{record.statement_notation}: {little_words:.0%} little words; no sentence?"


def duplicates(records: list[StandardRecord]) -> Iterator[str]:
    for name in ("id", "description", "statement_notation"):
        counts = Counter(getattr(record, name) for record in records)
        yield from (f"{count} records have the same {name}: {value}"
                    for value, count in counts.items() if count > 1)  # fmt: skip


def code_problems(records: list[StandardRecord], codes: Path) -> Iterator[str]:
    notations = {record.id: record.statement_notation for record in records}
    ours = {record.statement_notation: facts(record, notations) for record in records}
    theirs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    with codes.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for name, value in row.items():
                theirs[row["notation"]][name] |= {value} if value else set()
    yield from (f"{code}: missing" for code in sorted(theirs.keys() - ours.keys()))
    for code in sorted(theirs.keys() & ours.keys()):
        for name, value in ours[code].items():
            if (known := theirs[code][name]) and value not in known:
                yield f"{code}: {name} is {value}, not {' or '.join(sorted(known))}"


def facts(record: StandardRecord, notations: dict[str, str | None]) -> dict[str, str]:
    """Return what a file of codes may say about a record, as it says it."""
    return {
        "official_guid": record.id,
        "case_uuid": str((record.model_extra or {}).get("case_uuid") or ""),
        "asn_id": record.asn_identifier or "",
        "grades": ",".join(record.education_levels),
        "parent": notations.get(record.parent_id or "") or "",
    }


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
            if name == "parent_id" and expected is None:
                continue
            if ours != (tuple(expected) if isinstance(expected, list) else expected):
                yield f"{record.statement_notation}: {name} is {ours}, officially {expected}"


def official_records(records: list[StandardRecord], paths: list[Path]) -> list[dict]:
    ours = {record.id for record in records}
    official = [record for path in paths for record in read(path)]
    jurisdictions = {each["jurisdiction_id"] for each in official if each["_id"] in ours}
    return [each for each in official if each["jurisdiction_id"] in jurisdictions]


def read(path: Path) -> Iterator[dict]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(
        r"[a-z0-9]+(?:'[a-z]+)?", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


if __name__ == "__main__":
    sys.exit(main())
