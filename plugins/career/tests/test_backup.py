"""Backups of the database: while processes write to it, and killed at any moment."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.killing import finished, killed

from standards_mcp import ApiError
from standards_mcp_backup import BackupError
from standards_mcp_backup.archive import reading_archive
from standards_mcp_career.backup import CareerBackup
from standards_mcp_career.records import Atom
from standards_mcp_career.schema import LATEST, migrate, open_store, version_of
from standards_mcp_career.sqlite import SqliteStore
from standards_mcp_career.tables import atoms_revision, upsert

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.usefixtures("installed"),
]
KILLS = int(os.environ.get("KILLS", "2"))
ATOM = Atom("a-1", claim="Kept the presses running", verified=True)
WRITER = """
import sys
from pathlib import Path
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.records import Interaction, Opportunity
from standards_mcp_career.schema import open_store
from standards_mcp_career.tables import upsert

store = open_store(Path(sys.argv[1]))
for number in range(1_000_000):
    with store.writing() as connection:  # both or none
        upsert(connection, [Opportunity(f"o-{number}", "Reed Works", "Engineer")])
        upsert(connection, [Interaction(f"i-{number}", f"o-{number}", 0, 0)])
    if number % 20 == 0:
        print(number, flush=True)
"""


@pytest.fixture(autouse=True)
def _configured(tmp_path: Path) -> None:
    text = f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n[plugins.catalog]\n"
    text += f"enabled = false\n[plugins.career]\ndb = {json.dumps(str(tmp_path / 'career.db'))}\n"
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")


def counts(path: Path) -> tuple[int, int]:
    """Return how many opportunities and interactions there are, in an intact database."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return tuple(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in ("opportunities", "interactions")
        )


def unpacked(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    with reading_archive(archive) as reader:
        reader.extract(reader.manifest.parts, folder)
    return folder / "plugins" / "career" / "career.db"


def filled(count: int, name: str = "o") -> None:
    """Import so many opportunities."""
    records = [
        {"opportunity_id": f"{name}-{number}", "company": "Reed", "role_title": "Engineer"}
        for number in range(count)
    ]
    Path("in.json").write_text(json.dumps({"opportunities": records}), encoding="utf-8")
    finished("career", "import", "in.json")


def test_a_backup_while_a_process_writes_has_whole_transactions(db: Path, tmp_path: Path):
    program = [sys.executable, "-c", WRITER, str(db)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            for number in range(3):
                before = int(writer.stdout.readline())
                finished("backup", f"{number}.zip")
                opportunities, interactions = counts(
                    unpacked(Path(f"{number}.zip"), tmp_path / str(number))
                )
                assert opportunities == interactions > before
            # The database is replaced in one transaction: the writer sees it, and goes on.
            finished("restore", "0.zip", "--yes")
            later = [int(writer.stdout.readline()) for _ in range(3)]
            assert later == sorted(later)
            assert writer.poll() is None
        finally:
            writer.kill()
    opportunities, interactions = counts(db)
    assert opportunities == interactions


def test_a_restore_that_is_killed_leaves_the_old_database_or_the_new_one(
    db: Path, chance: random.Random
):
    filled(4000)
    finished("backup", "new.zip")
    db.rename(db.with_name("first.db"))
    filled(2500, "p")
    finished("backup", "old.zip")
    began = time.monotonic()
    finished("restore", "old.zip", "--yes")
    seconds = time.monotonic() - began
    for _ in range(KILLS):
        killed(1.1 * seconds, chance, "restore", "new.zip", "--yes")
        state = counts(db)
        assert state in {(4000, 0), (2500, 0)}
        if state == (4000, 0):
            finished("restore", "old.zip", "--yes")
    finished("restore", "new.zip", "--yes")
    assert counts(db) == (4000, 0)


def test_an_empty_machine_gives_the_same_answers(db: Path):
    filled(30)
    before = finished("career", "list", "opportunities", "--json")
    finished("backup", "backup.zip")
    db.unlink()
    finished("restore", "backup.zip", "--yes")
    assert finished("career", "list", "opportunities", "--json") == before
    if os.name != "nt":
        assert db.stat().st_mode & 0o777 == 0o600


def test_a_copy_of_an_earlier_version_is_brought_to_the_newest(db: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    copy.mkdir()
    earlier = SqliteStore(copy / "career.db")
    migrate(earlier, 4)
    earlier.close()
    with CareerBackup(db).restoring(copy) as replace:
        replace()
    with SqliteStore(db).reading() as connection:
        assert version_of(connection) == LATEST


def test_a_copy_that_is_damaged_or_newer_is_refused(db: Path, tmp_path: Path):
    open_store(db).close()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "career.db").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    with pytest.raises(BackupError), CareerBackup(db).restoring(copy):
        pass
    (copy / "career.db").unlink()
    open_store(copy / "career.db").close()
    with closing(sqlite3.connect(copy / "career.db")) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 99 WHERE version = 10")
    with pytest.raises(ApiError, match="version 99"), CareerBackup(db).restoring(copy):
        pass


@pytest.mark.parametrize(("saved", "later"), [(1, 0), (1, 1), (3, 1), (1, 3)])
def test_servers_notice_that_the_atoms_are_others(db: Path, tmp_path: Path, saved: int, later: int):
    """They read the words anew if the revision differs, also when a writer was first."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path, changes in ((copy / "career.db", saved), (db, later)):
        with closing(open_store(path)) as store, store.writing() as connection:
            for _ in range(changes):
                upsert(connection, [ATOM])
    with closing(open_store(db)) as server:
        with CareerBackup(db).restoring(copy) as replace:
            with server.writing() as connection:
                upsert(connection, [ATOM])
                seen = atoms_revision(connection)
            replace()
        with server.reading() as connection:
            assert atoms_revision(connection) > seen + 1
