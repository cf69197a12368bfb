"""Latency and memory of search, at the size of the starter set and of a corpus.

    python benchmarks/search.py --corpus C.jsonl.gz --queries Q.jsonl.gz [--index DIR]

Every size runs in a process of its own. First: from the first call to its answer, imports and
seeding included. Warm: one query after the other, the encoder included.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from standards_mcp_catalog import open_local
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.records import StandardRecord

QUERIES = ["Students compare fractions with fraction strips and explain their reasoning."] * 100
SUBJECT = {"subject": {"$in": ["Mathematics", "Math"]}}
FILTERS: Mapping[str, Mapping[str, Any] | None] = {
    "no filter": None,
    "subject": SUBJECT,
    "grade + subject": {"$and": [{"education_levels": {"$in": ["03", "04"]}}, SUBJECT]},
    "one set": {"standard_set_id": "CCSS-Math"},
}


def main() -> None:
    arguments = _arguments()
    if arguments.measure:
        _measure(arguments)
        return
    print(f"{'records':>8} {'filter':16}{'first ms':>10}{'p50 ms':>8}{'p95 ms':>8}{'peak MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        _spawn(arguments, Path(folder) / "starter")
        if arguments.corpus is not None:
            path = arguments.index or Path(folder) / "corpus"
            _import(path, arguments.corpus)
            _spawn(arguments, path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Latency and memory of search.")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--limit", type=int, default=300, help="how many of the queries")
    parser.add_argument("--index", type=Path, help="a folder to keep the corpus' index in")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _spawn(arguments: argparse.Namespace, path: Path) -> None:
    command = [sys.executable, __file__, "--measure", str(path), "--limit", str(arguments.limit)]
    if arguments.queries is not None:
        command += ["--queries", str(arguments.queries)]
    subprocess.run(command, check=True)


def _import(path: Path, corpus: Path) -> None:
    catalog = LocalCatalog(path)
    start = time.perf_counter()
    catalog.store.upsert(StandardRecord.from_dict(line) for line in _lines(corpus))
    imported = time.perf_counter()
    catalog.store.build()
    built = time.perf_counter()
    catalog.store.close()
    print(f"import {imported - start:.1f} s, index alone {built - imported:.1f} s", file=sys.stderr)


def _lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _measure(arguments: argparse.Namespace) -> None:
    queries = QUERIES
    if arguments.queries is not None:
        lines = _lines(arguments.queries)
        queries = [line["text"] for line in lines[:: max(1, len(lines) // arguments.limit)]]
    start = time.perf_counter()
    store = open_local(arguments.measure).store
    store.search(queries[0])
    first = (time.perf_counter() - start) * 1000
    records = store.stats().records
    for name, expression in FILTERS.items():
        times = [_timed(store, query, expression) for query in queries]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(f"{records:8,} {name:16}{first:10.0f}{p50:8.1f}{p95:8.1f}{peak:9.0f}", flush=True)
    store.close()


def _timed(store: Any, query: str, expression: Mapping[str, Any] | None) -> float:
    start = time.perf_counter()
    store.search(query, 5, expression)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
