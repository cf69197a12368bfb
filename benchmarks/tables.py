"""A large table: a dry run of an import, and `csv.DictReader` over the same file as the floor.

usage: python benchmarks/tables.py [--rows N] [--sets N]

The table is made first: trees of ten rows, N sets. Each is run in a process of its own, in turn:
seconds of processor time and of the clock, and the most memory that the process had.
"""

import argparse
import csv
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from standards_mcp_catalog.importing.files import open_sources
from standards_mcp_catalog.importing.importer import ImportOptions, import_sources
from standards_mcp_catalog.importing.readers import read_documents
from standards_mcp_catalog.local.store import LocalStore

WORDS = "count share compare groups beads describe explain model equal parts".split()  # noqa: SIM905
COLUMNS = ["id", "code", "text", "parent", "grades", "subject", "jurisdiction", "set_title"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sets", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        make(path, given.rows, given.sets)
        print(f"{given.rows:,} rows in {given.sets:,} sets, {path.stat().st_size / 1e6:,.0f} MB")
        floor = measured("csv.DictReader", read_only, path)
        ours = measured("data import --dry-run", dry_run, path)
        print(f"{ours / floor:.1f} x csv.DictReader alone")


def make(path: Path, rows: int, sets: int) -> None:
    chance = random.Random(1)  # noqa: S311
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number in range(rows):
            set_, place = divmod(number, max(rows // sets, 1))
            parent = f"W.{set_}.{place // 10}"
            code, above = (f"{parent}.{place % 10}", parent) if place % 10 else (parent, "")
            text = " ".join(chance.choices(WORDS, k=12)) + f" {number}."
            names = "Mathematics", "Willow State", f"Set {set_}"
            writer.writerow([f"ID-{number}", code, text, above, str(set_ % 8 + 1), *names])


def read_only(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.DictReader(file))


def dry_run(path: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        documents = read_documents(open_sources([path]))
        return import_sources(
            LocalStore(Path(folder)), documents, ImportOptions(dry_run=True)
        ).written


def measured(name: str, call: Callable[[Path], int], path: Path) -> float:
    """Run *call* in a process of its own; print what it took, and return its processor time."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run, args=(call, path, theirs))
    process.start()
    count, processor, clock, memory = ours.recv()
    process.join()
    print(f"{name:22} {count:,} rows, {processor:.1f} s ({clock:.1f} s by the clock), {memory} MB")
    return float(processor)


def run(call: Callable[[Path], int], path: Path, answer: Connection) -> None:
    began, used = time.perf_counter(), time.process_time()
    count = call(path)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    answer.send((count, time.process_time() - used, time.perf_counter() - began, memory))


if __name__ == "__main__":
    main()
