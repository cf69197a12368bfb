"""Measure how well a grade in a question is understood.

usage: python scripts/measure_grades.py

The questions are in `scripts/answers/grades.csv`: a text with a grade in it, its topic without the
grade, the grade, and the code of a standard that fits. Each is searched in the starter set as the
text, as the topic with the grade as an argument, and as the topic alone. Right: the standard or a
part of it is among the first five results.
"""

from starter_questions import COUNT, Questions, has_code, measure

from standards_mcp_catalog import Catalog, SearchHit
from standards_mcp_search.scope import scope_filter
from standards_mcp_search.text_search import search_by_text


async def _measure(catalog: Catalog, questions: Questions) -> None:
    right = dict.fromkeys(("topic", "text", "argument"), 0)
    different = list[str]()
    for question in questions:
        results = {
            "topic": await _search(catalog, question["topic"], None),
            "text": await _search(catalog, question["text"], None),
            "argument": await _search(catalog, question["topic"], question["grade"]),
        }
        for name, hits in results.items():
            right[name] += has_code(hits, question["code"])
        if results["text"] != results["argument"]:
            different.append(question["text"])
    total = len(questions)
    print(f"right without a grade        {right['topic']} of {total}")
    print(f"right, grade in the text     {right['text']} of {total}")
    print(f"right, grade as an argument  {right['argument']} of {total}")
    print(f"text and argument give the same first {COUNT}: {total - len(different)} of {total}")
    print("others:", *different, sep="\n  ")


async def _search(catalog: Catalog, text: str, grade: str | None) -> list[SearchHit]:
    scope = await scope_filter(catalog, grade, None, None)
    answer = await search_by_text(
        catalog, text, COUNT, scope, reads_grade=not grade, reads_subject=not grade
    )
    return list(answer.result.hits)


if __name__ == "__main__":
    measure(__doc__, "grades", _measure)
