"""Measure how often a search warns that the subject of a question is not loaded.

usage: python scripts/measure_loaded.py

The questions are in `scripts/answers/loaded.csv`, each with yes if the starter set covers it.
Warned are questions with a sentence on what is not loaded, and those with weak results only.
"""

import argparse
import asyncio
import csv
import tempfile
from pathlib import Path

from standards_mcp_catalog import Catalog, open_local
from standards_mcp_search.text_search import search_by_text

QUESTIONS = Path(__file__).parent / "answers" / "loaded.csv"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        questions = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(open_local(Path(folder), "minilm"), questions))


async def _measure(catalog: Catalog, questions: list[dict[str, str]]) -> None:
    for loaded, title in (("no", "not loaded"), ("yes", "loaded")):
        texts = [question["text"] for question in questions if question["loaded"] == loaded]
        warnings = [await _warning(catalog, text) for text in texts]
        by_sentence = sum(warning == "sentence" for warning in warnings)
        weak = sum(warning == "weak" for warning in warnings)
        print(f"{title}: {len(texts)}, warned {by_sentence + weak}, by a sentence {by_sentence}")
        is_right = [bool(warning) == (loaded == "no") for warning in warnings]
        for text, right in zip(texts, is_right, strict=True):
            if not right:
                print(f"  {text}")


async def _warning(catalog: Catalog, text: str) -> str:
    answer = await search_by_text(catalog, text, 5, None, reads_grade=True, reads_subject=True)
    if answer.missing:
        return "sentence"
    is_weak = all(hit.score < answer.result.weak_below for hit in answer.result.hits)
    return "weak" if is_weak else ""


if __name__ == "__main__":
    main()
