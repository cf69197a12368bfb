"""What a score means: the share of right results by score, and the scores of what cannot fit.

usage: python benchmarks/scores.py --queries Q.jsonl.gz --index DIR [--most N]

Each query is searched in its own framework, and in one of another subject, where nothing is right.
The index holds the corpus, see `retrieval.py --index`.
"""

import argparse
import asyncio
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from retrieval import lines

from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.local.index.ranking import WEAK_SCORE

STEP = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--most", type=int, default=1200)
    arguments = parser.parse_args()
    queries = list(lines(arguments.queries))
    random.Random(1).shuffle(queries)  # noqa: S311
    asyncio.run(_measure(LocalCatalog(arguments.index, "minilm"), queries[: arguments.most]))


async def _measure(catalog: LocalCatalog, queries: list[dict[str, Any]]) -> None:
    subjects = {item.id: item.subject for item in (await catalog.sets()).sets}
    right, foreign = defaultdict[str, Counter[float]](Counter), Counter[float]()
    total = defaultdict[str, Counter[float]](Counter)
    for query in queries:
        gold, own = set(query["gold_ids"]), query["framework"]
        for rank, hit in enumerate(await _hits(catalog, query, own)):
            ids = {hit.record.id, *(other.id for other in hit.also_in)}
            for kind in (f"tier {query['tier']}", *(("first",) if rank == 0 else ())):
                total[kind][_bin(hit.score)] += 1
                right[kind][_bin(hit.score)] += bool(ids & gold)
        others = [name for name, subject in subjects.items() if subject != subjects.get(own)]
        for hit in (await _hits(catalog, query, random.Random(query["qid"]).choice(others)))[:1]:  # noqa: S311
            foreign[_bin(hit.score)] += 1
    for kind in sorted(total):
        shares = (
            f"{low:.1f}: {right[kind][low] / count:.2f} of {count}"
            for low, count in sorted(total[kind].items())
        )
        print(f"right, {kind:8}", ", ".join(shares))
    below = sum(count for low, count in foreign.items() if low < WEAK_SCORE - STEP / 2)
    print(f"first of another subject: {below} of {foreign.total()} below {WEAK_SCORE}")


async def _hits(catalog: LocalCatalog, query: dict[str, Any], framework: str) -> tuple[Any, ...]:
    found = await catalog.search(query["text"][:8000], 5, {"standard_set_id": framework})
    return found.hits


def _bin(score: float) -> float:
    return round(int(score / STEP + 1e-9) * STEP, 1)


if __name__ == "__main__":
    main()
