"""Measure how well misspelt questions are answered, and that correct ones stay as they are.

usage: python scripts/measure_spelling.py

The questions are in `scripts/answers/misspelled.csv`, each with its correct form; both are searched
in the starter set. The texts of `unchanged.csv` have rare words, names and codes.
"""

from starter_questions import COUNT, Questions, answers, measure, search

from standards_mcp_catalog import Catalog


async def _measure(catalog: Catalog, questions: Questions) -> None:
    shared, exact, wrong = 0, 0, list[str]()
    for question in questions:
        misspelt = await search(catalog, question["misspelled"])
        correct = await search(catalog, question["correct"])
        ids = [{hit.record.id for hit in answer.result.hits} for answer in (misspelt, correct)]
        shared += len(set.intersection(*ids))
        exact += misspelt.text == question["correct"]
        if set(ids[0]) != set(ids[1]):
            wrong.append(f"{len(ids[0] & ids[1])} of {COUNT}  {misspelt.text}")
    total = len(questions) * COUNT
    print(f"results of the correct question: {shared} of {total}, {shared / total:.1%}")
    print(f"read as the correct question: {exact} of {len(questions)}")
    texts = [each["text"] for each in answers("unchanged")]
    print(f"correct texts that change: {await _changed(catalog, texts)} of {len(texts)}")
    print("others:", *wrong, sep="\n  ")


async def _changed(catalog: Catalog, texts: list[str]) -> int:
    changed = 0
    for text in texts:
        answer = await search(catalog, text)
        if answer.result.read_as:
            changed += 1
            print(f"  {text}: {answer.result.read_as}")
    return changed


if __name__ == "__main__":
    measure(__doc__, "misspelled", _measure)
