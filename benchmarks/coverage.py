"""What "met" means in `check_coverage`: how often people agree, and how often nothing can fit.

usage: python benchmarks/coverage.py [--queries Q.jsonl.gz --index DIR]

Each question of the open benchmark is an activity for the grade and subject of its standard in the
starter set, and for subjects where nothing is right. With --queries, the same for descriptions that
publishers and teachers tagged; the index holds the corpus, see `retrieval.py --index`. Questions of
`dev` and every other query were used to choose the threshold, and are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from retrieval import lines

from standards_mcp_alignment.coverage.matching import MET_SCORE
from standards_mcp_alignment.coverage.planning import MOST_EXACT, smallest_cover
from standards_mcp_catalog import Catalog, FilterExpression, StandardRecord, open_local
from standards_mcp_catalog.local.catalog import LocalCatalog

QUESTIONS = Path(__file__).parent / "alignment" / "questions.csv"
_PLANS, _PLANNED = 10, 120
THRESHOLDS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6)
OTHER_SCOPES = (
    ("Mathematics", "03"), ("Mathematics", "07"), ("Mathematics", "10"), ("Science", "05"),
    ("English Language Arts", "04"), ("English Language Arts", "09"),
)  # fmt: skip


@dataclass
class Best:
    """The score of the best standard for an activity, and whether it is right."""

    score: float
    right: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--index", type=Path)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        asyncio.run(_starter(open_local(Path(folder) / "catalog")))
    _plans()
    if arguments.queries and arguments.index:
        asyncio.run(_tagged(LocalCatalog(arguments.index), list(lines(arguments.queries))))


def _plans() -> None:
    """Print the longest time of a plan of `MOST_EXACT` activities at random."""
    for density in (0.03, 0.1, 0.15, 0.2, 0.25, 0.3):
        seconds, exact = list[float](), 0
        for seed in range(_PLANS):
            rng = random.Random(seed)  # noqa: S311
            covered = [
                sum(1 << bit for bit in range(_PLANNED) if rng.random() < density)
                for _ in range(MOST_EXACT)
            ]
            began = time.process_time()
            exact += smallest_cover(covered).exact
            seconds.append(time.process_time() - began)
        print(
            f"plans, density {density:.2f}: {exact} of {_PLANS} exact, {max(seconds):.1f} s at most"
        )


async def _starter(catalog: Catalog) -> None:
    with QUESTIONS.open(encoding="utf-8") as file:
        questions = list(csv.DictReader(file))
    found, foreign = list[Best](), list[Best]()
    for question in questions:
        (record, *_) = await catalog.find(question["code"])
        for subject, grade in OTHER_SCOPES:
            if {subject, record.subject} in ({"Science", "Computer Science"}, {record.subject}):
                continue
            scope: FilterExpression = {"subject": subject, "education_levels": grade}
            foreign.append(await _best(catalog, question["question"], scope, ()))
        if question["split"] == "test":
            scope = {
                "subject": record.subject,
                "jurisdiction_title": record.jurisdiction_title,
                "education_levels": record.education_levels[0],
            }
            found.append(await _best(catalog, question["question"], scope, (record,)))
    _print("open benchmark, test", found)
    _print("activities of another subject", foreign)


async def _tagged(catalog: Catalog, queries: Sequence[dict[str, str]]) -> None:
    by_tier: dict[str, list[Best]] = {"A": [], "B": []}
    for query in queries[1::2]:
        gold = await catalog.fetch(list(query["gold_ids"]))
        if gold and gold[0].education_levels:
            scope: FilterExpression = {
                "standard_set_id": query["framework"],
                "education_levels": gold[0].education_levels[0],
            }
            by_tier[query["tier"]].append(await _best(catalog, query["text"][:8000], scope, gold))
    for tier, found in by_tier.items():
        _print(f"tagged by publishers or teachers, tier {tier}", found)


async def _best(
    catalog: Catalog, text: str, scope: FilterExpression, gold: Iterable[StandardRecord]
) -> Best:
    wanted = {id_ for record in gold for id_ in (record.id, *record.child_ids)}
    result = await catalog.search(text, 1, {"$and": [scope, {"is_leaf": True}]})
    if not result.hits:
        return Best(0.0)
    (hit,) = result.hits
    return Best(hit.score, bool(wanted & {hit.record.id, *(each.id for each in hit.also_in)}))


def _print(name: str, found: Sequence[Best]) -> None:
    print(f"{name}: {len(found)} activities")
    for threshold in THRESHOLDS:
        met = [each for each in found if each.score >= threshold]
        right = sum(each.right for each in met)
        mark = " <- met" if threshold == MET_SCORE else ""
        print(
            f"  score {threshold:.2f}: {len(met) / len(found):.3f} are met, "
            f"{right / max(len(met), 1):.3f} of these right{mark}"
        )


if __name__ == "__main__":
    main()
