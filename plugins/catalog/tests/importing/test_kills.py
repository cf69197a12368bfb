"""Imports that are killed at any moment, and two imports at once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.killing import killed_at_the_end, report_of
from support.records import record

from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.starter import starter_seed

pytestmark = pytest.mark.processes

COUNT = 1500
KILLS = int(os.environ.get("KILLS", "2"))
"""How often each command is killed; more take longer and find more."""

Start = Callable[..., "subprocess.Popen[str]"]


def write_standards(path: Path, prefix: str = "K", count: int = COUNT, **fields: Any) -> list[str]:
    """Write short records as lines of JSON, and return their ids."""
    records = [
        record(
            number,
            f"Learners count {number} zebras",
            _id=f"{prefix}{number:05}",
            standard_set_id=f"set-{number % 7}",
            statement_notation=f"{prefix}Q.{number}",
            **fields,
        )
        for number in range(count)
    ]
    path.write_text("".join(f"{json.dumps(each.to_dict())}\n" for each in records), "utf-8")
    return [each.id for each in records]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a data command on the catalog of the test."""
    pairs = (f"plugins.catalog.path={tmp_path / 'catalog'}", "plugins.catalog.local.model=none")
    options = [f"--set={pair}" for pair in pairs]
    with killed_at_the_end() as begin:
        yield lambda *arguments: begin(*options, "data", *arguments, "--json")


def kill_after(process: subprocess.Popen[str], seconds: float) -> bool:
    """Kill a command after a time, and return whether it was still at work."""
    time.sleep(seconds)
    process.kill()
    process.communicate()
    return process.returncode != 0


def counted(records: Iterator[StandardRecord], prefix: str = "K") -> tuple[int, int]:
    """Return how many own and how many other records there are, each of which is there once."""
    ids = [record.id for record in records]
    assert len(ids) == len(set(ids))
    own = sum(id_.startswith(prefix) for id_ in ids)
    return own, len(ids) - own


def check_index(local: LocalStore, records: int) -> None:
    """Look whether the index is current and serves all records."""
    stats = local.stats()
    assert stats.records == records
    assert (stats.details["index"], stats.details["indexed_records"]) == ("current", records)
    for number in (0, COUNT // 2, COUNT - 1):
        hits = local.search(f"learners count {number} zebras", 3).hits
        assert f"{number} zebras" in hits[0].record.description
        assert [each.id for each in local.find(f"KQ.{number}")] == [f"K{number:05}"]


@pytest.mark.smoke
def test_an_import_that_is_killed_at_any_moment_wrote_all_or_nothing_and_is_run_again(
    start: Start, tmp_path: Path, chance: random.Random
):
    source, folder = tmp_path / "source.jsonl", tmp_path / "catalog"
    ids = write_standards(source)
    starter = len(starter_seed().records)
    began = time.monotonic()
    report_of(start("import", str(source)))
    longest = time.monotonic() - began
    kills, label = 0, "first"
    while kills < KILLS:
        # Half of the kills strike a catalog that is filled, whose records all change.
        if kills % 2 == 0:
            folder.rename(tmp_path / f"old-{chance.random()}")
        before = label if kills % 2 else None
        label = f"label {chance.random()}"
        write_standards(source, statement_label=label)
        killed = kill_after(start("import", str(source)), chance.uniform(0.2, 1.1) * longest)
        kills += killed
        local = LocalStore(folder, "none")
        own, others = counted(local.records())
        assert own in ((len(ids),) if before else (0, len(ids)))
        assert others in ((starter,) if own else (0, starter))
        labels = {record.statement_label for record in local.fetch(ids)}
        assert labels in ([{before}, {label}] if before else [set(), {label}])
        if (folder / "index" / "current").exists():
            assert local.search("learners count zebras", 1).hits or not own
        local.close()
        report = report_of(start("import", str(source)))
        assert report["new"] + report["changed"] + report["unchanged"] == len(ids)
        assert report["new"] == len(ids) - own
        check_index(local, len(ids) + starter)
        assert {record.statement_label for record in local.fetch(ids)} == {label}
        local.close()
        assert {path.name for path in folder.iterdir()} == {
            "catalog.sqlite3",
            "catalog.lock",
            "index",
        }


@pytest.mark.parametrize("same", [True, False], ids=["of the same", "of different files"])
def test_of_two_imports_at_once_one_waits_and_both_end_right(
    start: Start, tmp_path: Path, *, same: bool
):
    paths = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    ids = write_standards(paths[0]), write_standards(paths[1], "K" if same else "L")
    starter = len(starter_seed().records)
    reports = [report_of(each) for each in [start("import", str(path)) for path in paths]]
    both = set(ids[0]) | set(ids[1])
    assert [report["read"] for report in reports] == [COUNT, COUNT]
    local = LocalStore(tmp_path / "catalog", "none")
    own, others = counted(local.records(), ("K", "L"))
    assert (own, others) == (len(both), starter)
    assert {record.id for record in local.fetch(list(both))} == both
    check_index(local, len(both) + starter)
    local.close()
    assert report_of(start("import", str(paths[0])))["unchanged"] == COUNT


@pytest.mark.measured
def test_an_import_that_has_to_wait_says_for_what(start: Start, tmp_path: Path):
    import filelock

    source, folder = tmp_path / "one.jsonl", tmp_path / "catalog"
    write_standards(source, count=3)
    report_of(start("import", str(source)))
    write_standards(source, count=4)
    with filelock.FileLock(folder / "catalog.lock"):
        waiting = start("import", str(source))
        assert waiting.stderr is not None
        told = waiting.stderr.readline()
    assert "waiting up to 600 seconds for another process that writes to" in told
    assert str(folder) in told
    assert report_of(waiting)["new"] == 1
