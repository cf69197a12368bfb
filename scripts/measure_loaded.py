"""Measure how often a search warns that the subject of a question is not loaded.

usage: python scripts/measure_loaded.py

The questions are in `scripts/answers/loaded.csv`, each with yes if the starter set covers it.
Warned are questions with a sentence on what is not loaded, and those with weak results only.
"""

from starter_questions import Questions, measure, search

from standards_mcp_catalog import Catalog


async def _measure(catalog: Catalog, questions: Questions) -> None:
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
    answer = await search(catalog, text)
    if answer.missing:
        return "sentence"
    is_weak = all(hit.score < answer.result.weak_below for hit in answer.result.hits)
    return "weak" if is_weak else ""


if __name__ == "__main__":
    measure(__doc__, "loaded", _measure)
