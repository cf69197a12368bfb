"""Backups and restores of a real catalog: while it is written, and killed at any moment."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock
from support.killing import finished, killed, started
from support.records import record

from standards_mcp_backup.archive import reading_archive
from standards_mcp_catalog.local.store import LocalStore

pytestmark = [pytest.mark.processes, pytest.mark.slow]
KILLS = int(os.environ.get("KILLS", "2"))
"""How often each command is killed; more take longer and find more."""
OLD, NEW = 1200, 700
_COUNT = "SELECT count(*) FROM records WHERE id LIKE ?"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    """Configure a catalog without vectors, and return its folder."""
    text = f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n[plugins.catalog]\n"
    text += f"path = {json.dumps(str(tmp_path / 'catalog'))}\nlocal.model = 'none'\n"
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")
    return tmp_path / "catalog"


def write_standards(prefix: str, count: int) -> Path:
    """Write records as lines of JSON."""
    records = [
        record(
            number,
            f"Learners count {number} {prefix} zebras",
            _id=f"{prefix}{number:05}",
            standard_set_id=f"set-{prefix}",
            statement_notation=f"{prefix}Q.{number}",
        )
        for number in range(count)
    ]
    path = Path(f"{prefix}.jsonl")
    path.write_text("".join(f"{json.dumps(each.to_dict())}\n" for each in records), "utf-8")
    return path


def counts(database: Path) -> tuple[int, int]:
    """Return how many old and how many new records there are."""
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        old, new = (connection.execute(_COUNT, (f"{x}%",)).fetchone()[0] for x in "KN")
    return old, new


def counts_of(archive: Path, folder: Path) -> tuple[int, int]:
    """Return the counts in an archive, of which every digest is right."""
    folder.mkdir(exist_ok=True)
    with reading_archive(archive) as reader:
        reader.extract(reader.manifest.parts, folder)
    return counts(folder / "plugins" / "catalog" / "catalog.sqlite3")


def answers(folder: Path) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    store = LocalStore(folder, "none")
    for text in ("learners count 7 zebras", "compare fractions", "NQ.12", "3.NF.A.1"):
        hits = store.search(text, 5).hits
        yield text, [(hit.record.id, round(hit.score, 4)) for hit in hits]
    store.close()


def test_a_backup_while_an_import_writes_has_all_of_it_or_nothing(folder: Path, tmp_path: Path):
    finished("data", "import", write_standards("K", OLD))
    writing = started("data", "import", write_standards("N", 6000))
    seen = set[tuple[int, int]]()
    while writing.poll() is None:
        finished("backup", "backup.zip")
        seen.add(counts_of(Path("backup.zip"), tmp_path / "out"))
    writing.communicate()
    assert writing.returncode == 0
    assert (OLD, 0) in seen
    assert seen <= {(OLD, 0), (OLD, 6000)}
    finished("backup", "backup.zip")
    before = [*answers(folder)]
    finished("data", "remove", "set-N", "--yes")
    assert counts(folder / "catalog.sqlite3") == (OLD, 0)
    finished("restore", "backup.zip", "--yes")
    assert [*answers(folder)] == before


def test_a_backup_that_is_killed_leaves_the_earlier_archive_or_the_new_one(
    tmp_path: Path, chance: random.Random
):
    finished("data", "import", write_standards("K", OLD))
    began = time.monotonic()
    finished("backup", "backup.zip")
    seconds = time.monotonic() - began
    stops = threading.Event()
    files = [write_standards("N", NEW), write_standards("K", OLD)]

    def write_all_the_time() -> None:
        while not stops.is_set():
            for file in files:
                finished("data", "import", file)

    writer = threading.Thread(target=write_all_the_time)
    writer.start()
    try:
        for _ in range(KILLS):
            killed(2 * seconds, chance, "backup", "backup.zip")
            old, new = counts_of(Path("backup.zip"), tmp_path / "out")
            assert (old, new in (0, NEW)) == (OLD, True)
    finally:
        stops.set()
        writer.join()
    finished("backup", "backup.zip")
    assert counts_of(Path("backup.zip"), tmp_path / "out") == (OLD, NEW)
    assert not [*Path().glob(".backup*")]


def test_a_restore_that_is_killed_leaves_the_old_catalog_or_the_new_one(
    folder: Path, chance: random.Random
):
    finished("data", "import", write_standards("N", NEW))
    expected = [*answers(folder)]
    finished("backup", "new.zip")
    finished("data", "remove", "set-N", "--yes")
    finished("data", "import", write_standards("K", OLD))
    finished("backup", "old.zip")
    began = time.monotonic()
    finished("restore", "old.zip", "--yes")
    seconds = time.monotonic() - began
    for _ in range(KILLS):
        killed(1.2 * seconds, chance, "restore", "new.zip", "--yes")
        state = counts(folder / "catalog.sqlite3")
        assert state in {(OLD, 0), (0, NEW)}
        store = LocalStore(folder, "none")
        result = store.search("learners count 7 zebras", 3)
        if store.stats().details["index"] == "current":
            assert "7" in result.hits[0].record.description
        else:  # killed between the database and its index
            assert any("import is running or was interrupted" in note for note in result.notes)
        store.close()
        if state != (OLD, 0):
            finished("restore", "old.zip", "--yes")
    finished("restore", "new.zip", "--yes")
    assert [*answers(folder)] == expected
    assert {path.name for path in (folder / "index").iterdir()} >= {"current"}


def test_a_process_that_serves_sees_the_restored_catalog(folder: Path):
    finished("data", "import", write_standards("N", NEW))
    finished("backup", "new.zip")
    finished("data", "import", write_standards("K", OLD))
    store = LocalStore(folder, "none")  # stays open, as in a server
    assert [record.id for record in store.find("KQ.7")] == ["K00007"]
    facts = store.facets()
    finished("restore", "new.zip", "--yes")
    assert store.find("KQ.7") == []
    assert store.facets() != facts
    result = store.search("learners count 9 zebras", 3)
    assert (result.hits[0].record.id, result.notes[1:]) == ("N00009", ())
    store.close()


def test_a_restore_waits_for_no_import(folder: Path):
    finished("data", "import", write_standards("N", 5))
    finished("backup", "new.zip")
    with FileLock(folder / "catalog.lock"):
        process = started("restore", "new.zip", "--yes")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "another process has been writing" in errors


def test_an_empty_machine_gives_the_same_answers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    finished("data", "import", write_standards("N", NEW))
    before = finished("search", "learners count 9 zebras", "--json")
    finished("backup", "backup.zip")
    archive = Path("backup.zip").absolute()
    for path in (folder, tmp_path / "state"):
        path.rename(path.with_name(f"{path.name}-of-the-old-machine"))
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    finished("restore", archive, "--yes")
    assert finished("search", "learners count 9 zebras", "--json") == before
