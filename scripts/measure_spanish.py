"""Measure how well Spanish questions are answered, and that no English one is taken for Spanish.

usage: python scripts/measure_spanish.py

The questions are in `scripts/answers/spanish.csv`: a question in Spanish, the same in English, and
the code of a standard that fits. Both are searched in the starter set. Right: the standard or a
part of it is among the first five results.
"""

import csv
from pathlib import Path

from starter_questions import COUNT, Questions, has_code, measure, search

from standards_mcp_catalog import Catalog
from standards_mcp_catalog.starter import starter_wordings
from standards_mcp_search.languages import read_text

_ROOT = Path(__file__).parents[1]
# The English column of each file with English texts.
_ENGLISH = {
    "scripts/answers/grades.csv": "text",
    "scripts/answers/loaded.csv": "text",
    "scripts/answers/spanish.csv": "english",
    "scripts/answers/misspelled.csv": "correct",
    "benchmarks/starter_questions.csv": "question",
    "benchmarks/starter_questions_unseen.csv": "question",
}


async def _measure(catalog: Catalog, questions: Questions) -> None:
    right, wrong, shared = dict.fromkeys(("question", "english"), 0), list[str](), 0
    for question in questions:
        results = {name: await search(catalog, question[name]) for name in right}
        for name, answer in results.items():
            right[name] += has_code(answer.result.hits, question["code"])
        ids = [{hit.record.id for hit in answer.result.hits} for answer in results.values()]
        shared += len(set.intersection(*ids))
        answer = results["question"]
        if not has_code(answer.result.hits, question["code"]) or not answer.language:
            wrong.append(f"{question['question']}\n    {answer.text}  {answer.missing or ''}")
    total = len(questions)
    print(f"right in English  {right['english']} of {total}")
    print(f"right in Spanish  {right['question']} of {total}")
    print(f"shared of the first {COUNT}: {shared / total / COUNT:.2f}")
    texts = _english_texts()
    foreign = [text for text in texts if read_text(text).language or read_text(text).foreign]
    print(f"English texts that are taken for another language: {len(foreign)} of {len(texts)}")
    print("others:", *wrong, *foreign, sep="\n  ")


def _english_texts() -> list[str]:
    texts = [phrase for wording in starter_wordings() for phrase in wording.phrases]
    for path, column in _ENGLISH.items():
        with (_ROOT / path).open(encoding="utf-8", newline="") as file:
            texts += [row[column] for row in csv.DictReader(file)]
    return texts


if __name__ == "__main__":
    measure(__doc__, "spanish", _measure)
