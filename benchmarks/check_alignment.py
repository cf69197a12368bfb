"""Checks of lessons: faults in codes and quotations that are found, and false alarms.

usage: python benchmarks/check_alignment.py [--lessons N] [--seed N] [--errors]

Composes lessons with five seeded faults each over a temporary catalog (the starter set and two
invented states), checks them as the tool does, and prints precision and recall of each status, the
processor time of a page, and the codes found in texts that only look as if they had some. With
--errors, prints the wrong answers.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from _check_formats import lookalikes
from _check_lessons import FAULTS, Composer, Lesson
from _check_standards import records

from standards_mcp_alignment.checking.check import check
from standards_mcp_alignment.checking.envelope import AlignmentCheck
from standards_mcp_catalog import Catalog, open_local

MISSING = ("unknown", "not_loaded")


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lessons", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--errors", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_local(Path(folder) / "catalog")
        await catalog.upsert(records())
        every = list(catalog.store.records())
        lessons = Composer(every, given.seed).lessons(given.lessons)
        pairs, seconds = Counter[tuple[str, str]](), list[float]()
        for number, lesson in enumerate(lessons):
            began = time.process_time()
            answer = await ask(catalog, lesson.text, **lesson.arguments)
            seconds += [time.process_time() - began] if number else []
            for right, got, text in compared(lesson, answer):
                pairs[right, got] += 1
                if right != got and given.errors:
                    print(f"{right} -> {got}: {text!r} {lesson.arguments}")
        report(pairs, lessons, seconds)
        found = 0
        for text in lookalikes():
            codes = (await ask(catalog, text))["codes"]
            found += len(codes)
            for entry in codes:
                print(f"found in {text!r}: {entry['written']} {entry['status']}")
        print(f"{len(lookalikes())} texts without codes: {found} found")
        await catalog.aclose()


async def ask(
    catalog: Catalog, text: str, grade: str = "", subject: str = "", jurisdiction: str = ""
) -> AlignmentCheck:
    return await check(catalog, text, "", grade, subject, jurisdiction)


def compared(lesson: Lesson, answer: AlignmentCheck) -> list[tuple[str, str, str]]:
    """Return (right status, status of the answer, text); "none" for no code or no answer."""
    entries = {
        span: entry
        for entry in answer["codes"]
        for span in ((entry["start"], entry["end"]), *map(tuple, entry.get("repeated", [])))
    }
    results, used = list[tuple[str, str, str]](), set[tuple[int, ...]]()
    for code in lesson.codes:
        end = code.start + len(code.text)
        span = next((each for each in entries if each[0] < end and each[1] > code.start), None)
        if span is None:
            results.append((code.status, "none", code.text))
            continue
        used.add(span)
        text = f"{code.text} | {code.words} | {entries[span]['note']}"
        results.append((code.status, entries[span]["status"], text))
    spurious = [entry for span, entry in entries.items() if span not in used]
    results += [("none", entry["status"], entry["written"]) for entry in spurious]
    return results


def report(pairs: Counter[tuple[str, str]], lessons: list[Lesson], seconds: list[float]) -> None:
    faults = Counter(code.status for lesson in lessons for code in lesson.codes)
    total = sum(faults[each] for each in FAULTS)
    print(f"{len(lessons)} lessons, {total:,} faults, {faults['ok']:,} right codes")
    print("| status | seeded | precision | recall |\n|---|---|---|---|")
    exists = {name for name in (*FAULTS, "ok") if name not in MISSING}
    for name, group in (("exists", exists), *((each, {each}) for each in ("ok", *FAULTS))):
        hits = sum(
            count for (right, got), count in pairs.items() if right in group and got in group
        )
        given = sum(count for (right, _), count in pairs.items() if right in group)
        answered = sum(count for (_, got), count in pairs.items() if got in group)
        print(
            f"| {name} | {given:,} | {hits / max(1, answered):.4f} | {hits / max(1, given):.4f} |"
        )
    ordered = sorted(seconds)
    size = statistics.mean(len(lesson.text) for lesson in lessons)
    print(
        f"a lesson of {size:,.0f} characters: median {ordered[len(ordered) // 2] * 1000:.0f} ms, "
        f"95 % {ordered[int(len(ordered) * 0.95)] * 1000:.0f} ms, most {ordered[-1] * 1000:.0f} ms"
    )


if __name__ == "__main__":
    asyncio.run(main())
