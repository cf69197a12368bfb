"""Retrieval quality: rank the standards of each query's framework and write the run.

    python benchmarks/retrieval.py --corpus C.jsonl.gz --queries Q.jsonl.gz --run RUN.jsonl

A corpus holds one record a line, in the record structure of `StandardRecord`. A query holds
``qid``, ``text``, ``framework`` (the ``standard_set_id`` that it searches), ``gold_ids``, ``tier``
and ``source``. The run holds ``{"qid", "ids"}`` lines, the best 100 first. Records whose text
equals a hit's are not listed: they stand in the hit's ``also_in``. The means are printed by
framework, by tier and by halves of a tier, into which its sources are dealt.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.results import SearchResult

Query: TypeAlias = dict[str, Any]
DEPTH = 100


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        catalog = LocalCatalog(arguments.index or Path(temporary), arguments.model)
        try:
            _import(catalog, arguments.corpus)
            queries = list(lines(arguments.queries))
            _report(queries, asyncio.run(_run(catalog, queries, arguments)))
        finally:
            asyncio.run(catalog.aclose())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--backend", choices=["local"], default="local")
    parser.add_argument("--mode", choices=["hybrid", "lexical", "dense"], default="hybrid")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--index", type=Path, help="a folder to keep the index and vectors in")
    return parser.parse_args()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    yield from (json.loads(line) for line in text.split("\n") if line.strip())


def _import(catalog: LocalCatalog, corpus: Path) -> None:
    start = time.perf_counter()
    records = (StandardRecord.from_dict(line) for line in lines(corpus))
    changed = catalog.store.upsert(records, _show_progress)
    print(f"imported: {changed:,} records in {time.perf_counter() - start:.1f} s", file=sys.stderr)


def _show_progress(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    print(f"\rembedded: {done:,} of {total:,} texts", end=end, file=sys.stderr, flush=True)


async def _run(
    catalog: LocalCatalog, queries: list[Query], arguments: argparse.Namespace
) -> dict[str, list[str]]:
    run: dict[str, list[str]] = {}
    start = time.perf_counter()
    with arguments.run.open("w", encoding="utf-8") as file:
        for query in queries:
            result = await _search(catalog, query, arguments.mode)
            run[query["qid"]] = ids = [hit.record.id for hit in result.hits]
            file.write(json.dumps({"qid": query["qid"], "ids": ids}) + "\n")
    seconds = time.perf_counter() - start
    print(f"searched: {len(queries):,} queries in {seconds:.1f} s", file=sys.stderr)
    return run


async def _search(catalog: LocalCatalog, query: Query, mode: str) -> SearchResult:
    within = {"standard_set_id": query["framework"]}
    if mode == "hybrid":
        return await catalog.search(query["text"], DEPTH, within)
    return catalog.store.search(query["text"], DEPTH, within, mode)  # type: ignore[arg-type]


def _report(queries: list[Query], run: dict[str, list[str]]) -> None:
    """Print the means by framework; equal texts do not count, so this is a lower bound."""
    totals = defaultdict[str, Counter[str]](Counter)
    halves = dict[str, str]()
    for tier in {query["tier"] for query in queries}:
        tiered = [query for query in queries if query["tier"] == tier]
        for number, half in enumerate(split_by_source(tiered), 1):
            halves |= dict.fromkeys((each["qid"] for each in half), f"tier {tier}, half {number}")
    for query in queries:
        if not query.get("gold_ids"):
            continue
        tier = f"tier {query['tier']}"
        for group in ("all", tier, halves[query["qid"]], query["framework"]):
            totals[group].update(measures(run[query["qid"]], set(query["gold_ids"])))
    print(f"{'framework':36}{'n':>6}{'recall@5':>10}{'recall@10':>10}{'nDCG@10':>10}{'MRR':>8}")
    for group, total in sorted(totals.items(), key=lambda item: -item[1]["n"]):
        means = {name: value / total["n"] for name, value in total.items()}
        print(
            f"{group:36}{total['n']:6.0f}{means['recall@5']:10.4f}{means['recall@10']:10.4f}"
            f"{means['nDCG@10']:10.4f}{means['MRR']:8.4f}"
        )


def split_by_source(queries: list[Query]) -> tuple[list[Query], list[Query]]:
    """Deal the sources, the largest first, each to the half that has fewer queries."""
    halves: tuple[list[Query], list[Query]] = [], []
    sizes = Counter(query["source"] for query in queries)
    for source, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        min(halves, key=len).extend(query for query in queries if query["source"] == source)
    return halves


def measures(ranked: list[str], gold: set[str]) -> Counter[str]:
    gains = [1 / math.log2(rank + 2) for rank in range(min(10, len(gold)))]
    found = [rank for rank, id_ in enumerate(ranked) if id_ in gold]
    return Counter(
        {
            "n": 1,
            "recall@5": sum(rank < 5 for rank in found) / min(5, len(gold)),
            "recall@10": sum(rank < 10 for rank in found) / min(10, len(gold)),
            "nDCG@10": sum(1 / math.log2(rank + 2) for rank in found if rank < 10) / sum(gains),
            "MRR": 1 / (found[0] + 1) if found else 0.0,
        }  # type: ignore[dict-item]
    )


if __name__ == "__main__":
    main()
