"""What both sides of `scale` agree on: the filters, and how time and memory are taken.

It runs in the environment of the peers too, so it imports nothing of the project.
"""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Filter: TypeAlias = Mapping[str, Sequence[str]]
"""The values that each field may have; every field must have one of its own."""

SUBJECTS = ["Mathematics", "Math"]
FILTERS: Mapping[str, Filter] = {
    "no filter": {},
    "subject": {"subject": SUBJECTS},
    "subject + grade": {"subject": SUBJECTS, "education_levels": ["03", "04"]},
    "one set": {"standard_set_id": ["CCSS-Math"]},
}
FIELDS = ("subject", "education_levels", "standard_set_id")
TOP = 20
_MEBIBYTE = 2**20


def rounds(
    call: Callable[[Any], object], queries: Sequence[Any], count: int, seconds: float
) -> dict[str, Any]:
    """Time *call* on all *queries*, *count* times after a first that does not count.

    A call so slow that this would take longer than *seconds* gets fewer queries, at least five.

    Returns:
        How many queries there were, and of each round the p50 and the p95 in milliseconds.
    """
    call(queries[0])
    start = time.perf_counter()
    call(queries[1])
    enough = int(seconds / (count + 1) / (time.perf_counter() - start))
    asked = queries[: max(5, enough)]
    _, *taken = [_percentiles(call, asked) for _ in range(count + 1)]
    return {"queries": len(asked), "p50": [t[0] for t in taken], "p95": [t[1] for t in taken]}


def _percentiles(call: Callable[[Any], object], queries: Sequence[Any]) -> tuple[float, float]:
    times: list[float] = []
    for query in queries:
        start = time.perf_counter()
        call(query)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times), statistics.quantiles(times, n=20, method="inclusive")[-1]


def save(path: Path, data: object) -> None:
    path.write_text(json.dumps(data), "utf-8")


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def megabytes(path: Path) -> int:
    """Return the size of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) // _MEBIBYTE


def peak() -> int:
    """Return the greatest memory so far in MB, files that are mapped included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def memory(name: str = "RssAnon") -> int:
    """Return the memory in MB that only this process has; with ``VmRSS``, mapped files too."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{name}:"))
