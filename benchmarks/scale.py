"""The embedded store at a million records, beside LanceDB, Chroma and Qdrant's local mode.

    python benchmarks/scale.py --corpus C.jsonl.gz --queries Q.jsonl.gz --index DIR --folder F
        [--records N] [--only ours,lancedb,chroma,qdrant] [--peer-python PYTHON] [--rebuild]

The records are recombined from the corpus, see `_scale_records`; DIR is a catalog of the corpus,
made there when it is missing, and the only thing that is ever embedded besides the queries. F keeps
what is built, by number of records; the next run measures it again without building it.

The peers get the same vectors and fields. All are compared by "vectors alone": the best 20 rows
for one vector under a filter. Each store builds in one process and is opened and searched in
another. What a store cannot do in --load-minutes is reported and left out; measure it in a run of
its own with fewer --records.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from _scale_common import FILTERS, load
from _scale_ours import recall

HERE = Path(__file__).parent
OURS = "ours"
NAMES = (OURS, "lancedb", "chroma", "qdrant")


def main() -> None:
    arguments = _arguments()
    folder = arguments.folder / str(arguments.records)
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in NAMES if name in {OURS, *arguments.only.split(",")}]
    measured = [name for name in names if _measure(arguments, folder, name)]
    built = {name: load(folder / f"{name}.built.json") for name in measured}
    asked = {name: load(folder / f"{name}.asked.json") for name in measured}
    for name in measured:
        asked[name]["recall"] = recall(folder, asked[name]["found"])
    _print_ours(arguments.records, built[OURS], asked[OURS])
    _print_stores(built, asked)
    _print_searches(built, asked)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The embedded store and others, at scale.")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True, help="a catalog of the corpus")
    parser.add_argument("--folder", type=Path, required=True, help="where to keep what is built")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--only", default=",".join(NAMES), help="ours is always measured")
    parser.add_argument("--peer-python", default=sys.executable, help="what has them installed")
    parser.add_argument("--rebuild", action="store_true", help="build what is there already")
    parser.add_argument("--limit", type=int, default=60, help="how many of the queries")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load-minutes", type=float, default=60)
    parser.add_argument("--search-minutes", type=float, default=0.5, help="for each filter")
    return parser.parse_args()


def _measure(arguments: argparse.Namespace, folder: Path, name: str) -> bool:
    """Build a store unless it is there, search it, and return whether both went well."""
    build, ask = _commands(arguments, folder, name)
    steps = [build, ask] if arguments.rebuild or not _is_built(folder, name) else [ask]
    for step in steps:
        print(f"{name}: {step[2]} ...", file=sys.stderr)
        if subprocess.run(step, check=name == OURS).returncode:
            return False
    return True


def _is_built(folder: Path, name: str) -> bool:
    """Return whether a store is there; a peer must hold the rows in the order of our index."""
    built = folder / f"{name}.built.json"
    if name == OURS or not built.exists():
        return built.exists()
    return bool(load(built).get("vectors") == load(folder / "shared.json")["vectors"])


def _commands(arguments: argparse.Namespace, folder: Path, name: str) -> tuple[list[str], ...]:
    rounds = ["--rounds", str(arguments.rounds)]
    load_minutes = ["--minutes", str(arguments.load_minutes)]
    search_minutes = ["--minutes", str(arguments.search_minutes)]
    if name != OURS:
        program = [arguments.peer_python, str(HERE / "_scale_peers.py")]
        return (
            [*program, "load", name, str(folder), *load_minutes, *rounds],
            [*program, "ask", name, str(folder), *search_minutes, *rounds],
        )
    program = [sys.executable, str(HERE / "_scale_ours.py")]
    rest = [str(folder), *search_minutes, *rounds]
    for each in ("records", "corpus", "queries", "index", "limit"):
        rest += [f"--{each}", str(getattr(arguments, each))]
    return [*program, "build", *rest], [*program, "ask", *rest]


def _print_ours(records: int, built: dict[str, Any], asked: dict[str, Any]) -> None:
    print(f"\n{records:,} records\n\n| our store | |\n|---|---|")
    corpus = f"{built['corpus peak']:,} MB of it the corpus that they are made from"
    rows = {
        "vectors taken in": f"{built['vectors']:,.0f} s",
        "records written": f"{built['records']:,.0f} s, {built['database disk']:,} MB",
        "index built": f"{built['index']:,.0f} s, {built['disk']:,} MB",
        "peak memory of all that": f"{built['build peak']:,} MB, {corpus}",
        "index opened": f"{asked['open']:.0f} ms, {asked['open memory']:,} MB",
        "first search, with imports and the model": f"{asked['first']:,.0f} ms",
        "facets, the first time": f"{asked['facets']:,.0f} ms",
        "all records of one set": f"{asked['one set']:,.0f} ms",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    print("\n| our search, best 20 | filter | rows | p50 ms | p95 ms |\n|---|---|---|---|---|")
    print(f"| the query encoded | | | {_times(asked['encoder'])} |")
    for part, times in asked["times"].items():
        for name in FILTERS:
            print(f"| {part} | {name} | {asked['selected'][name]:,} | {_times(times[name])} |")


def _print_stores(built: dict[str, Any], asked: dict[str, Any]) -> None:
    print("\n| store | build | its peak memory | disk | open and search once | memory, private |")
    print("|---|---|---|---|---|---|")
    for name, facts in built.items():
        disk = f"{facts['disk']:,} MB"
        if name == OURS:
            disk += f", and the records themselves {facts['database disk']:,} MB"
        first, private = asked[name]["first"], asked[name]["private"]
        print(
            f"| {_title(name, built)} | {facts['build']:,.0f} s | {facts['build peak']:,} MB "
            f"| {disk} | {first:,.0f} ms | {private:,} MB |"
        )


def _print_searches(built: dict[str, Any], asked: dict[str, Any]) -> None:
    print("\n| vectors alone, best 20 | filter | p50 ms | p95 ms | p95 / ours | recall@10 |")
    print("|---|---|---|---|---|---|")
    ours = asked[OURS]["times"]["vectors alone"]
    for filter_name in FILTERS:
        for name, facts in asked.items():
            times = (ours if name == OURS else facts["times"])[filter_name]
            ratio = statistics.median(times["p95"]) / statistics.median(ours[filter_name]["p95"])
            print(
                f"| {_title(name, built)} | {filter_name} | {_times(times)} | {ratio:.1f} "
                f"| {facts['recall'][filter_name]:.3f} |"
            )


def _title(name: str, built: dict[str, Any]) -> str:
    return f"{name} {built[name].get('version', '')}".strip()


def _times(times: dict[str, Any]) -> str:
    """Return the medians of the rounds, and the least and the greatest p95."""
    p50, p95 = statistics.median(times["p50"]), statistics.median(times["p95"])
    return f"{p50:.1f} | {p95:.1f} ({min(times['p95']):.1f} to {max(times['p95']):.1f})"


if __name__ == "__main__":
    main()
