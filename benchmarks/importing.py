"""Importing: what is read from real files, and how fast.

usage: python benchmarks/importing.py --paths FILE... [--catalog FOLDER]

For each path: documents, records, what is skipped and why, and records a second for reading alone.
With --catalog everything is then imported into a catalog in that folder, twice: the second time
nothing has changed. The peer of reading is `json.loads` over the same bytes.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from standards_mcp_catalog.importing.files import Document, open_sources
from standards_mcp_catalog.importing.importer import import_sources
from standards_mcp_catalog.importing.readers import read_documents
from standards_mcp_catalog.importing.report import Problem, Report
from standards_mcp_catalog.records import StandardRecord


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--paths", nargs="+", required=True)
    parser.add_argument("--catalog", type=Path)
    given = parser.parse_args()
    for path in given.paths:
        report, seconds = timed(lambda path=path: read(path))
        _, peer = timed(lambda path=path: parse(path))
        print(f"\n{Path(path).name}: {report.documents:,} documents, {report.read:,} records")
        print(f"  reading  {rate(report.read, seconds)}, {seconds / peer:.1f} x json.loads alone")
        print(f"  skipped  {dict(report.skipped) or 'nothing'}")
        print(f"  noted    {dict(report.notes) or 'nothing'}")
    if given.catalog:
        for name in ("first", "again"):
            load(name, given.paths, given.catalog)


def read(path: str) -> Report:
    report = Report()
    for document in read_documents(open_sources([path])):
        report.documents += 1
        for item in document:
            if isinstance(item, StandardRecord):
                report.read += 1
            elif isinstance(item, Problem):
                report.add(item)
    return report


def parse(path: str) -> None:
    for document in open_sources([path]):
        if isinstance(document, Document) and ".jsonl" in document.name:
            for line in document.stream:
                json.loads(line)
        elif isinstance(document, Document) and ".json" in document.name:
            json.loads(document.stream.read())


def load(name: str, paths: list[str], folder: Path) -> None:
    from standards_mcp_catalog import open_local

    store: Any = open_local(folder)
    documents = read_documents(open_sources(paths))
    report, seconds = timed(lambda: import_sources(store.store, documents))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nimport, {name}: {seconds:.1f} s, {rate(report.read, seconds)}, peak {peak:,.0f} MB")
    for line in report.lines():
        print(f"  {line}")


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    result = call()
    return result, time.perf_counter() - began


def rate(records: int, seconds: float) -> str:
    return f"{records / seconds:,.0f} records a second"


if __name__ == "__main__":
    main()
