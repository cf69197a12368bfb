"""Questions as teachers ask them, searched over the whole starter set.

    python benchmarks/starter.py [--questions FILE] [--all]

FILE is a CSV file with the columns `question` and `code`; `starter_questions.csv` lies beside this
program. A question counts as answered if its code is among the first five standards. Those that are
not are printed with what came first, and with ``--all`` every question is.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import tempfile
from collections import Counter
from pathlib import Path

from standards_mcp_catalog import open_local
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.starter import starter_records

TOP = 5
QUESTIONS = Path(__file__).with_name("starter_questions.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--all", action="store_true", help="print every question")
    arguments = parser.parse_args()
    with arguments.questions.open(encoding="utf-8", newline="") as file:
        questions = [(row["question"], row["code"]) for row in csv.DictReader(file)]
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_local(Path(folder))
        found = asyncio.run(_ask(catalog, [question for question, _ in questions]))
    _report(questions, found, every=arguments.all)


async def _ask(catalog: Catalog, questions: list[str]) -> list[list[str]]:
    try:
        results = [await catalog.search(question, TOP) for question in questions]
    finally:
        await catalog.aclose()
    return [
        [
            record.statement_notation or ""
            for hit in result.hits
            for record in (hit.record, *hit.also_in)
        ]
        for result in results
    ]


def _report(questions: list[tuple[str, str]], found: list[list[str]], *, every: bool) -> None:
    subjects = {record.statement_notation: record.subject for record in starter_records()}
    asked, answered, first = Counter[str](), Counter[str](), Counter[str]()
    for (question, code), codes in zip(questions, found, strict=True):
        for group in (subjects[code], "all"):
            asked[group] += 1
            answered[group] += code in codes
            first[group] += codes[:1] == [code]
        if every or code not in codes:
            print(f"{'+' if code in codes else '-'} {question} [{code}]: {', '.join(codes)}")
    print(f"{'subject':20}{'asked':>6}{'first 5':>9}{'first':>7}")
    for group, total in asked.items():
        print(f"{group:20}{total:6}{answered[group]:9}{first[group]:7}")


if __name__ == "__main__":
    main()
