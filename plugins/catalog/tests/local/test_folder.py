"""Folders that cannot hold a catalog, or hold one that nobody may change."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.permissions import needs_permissions, not_writable
from support.records import SMALL_CATALOG

from standards_mcp_backup import BackupError
from standards_mcp_catalog import CatalogUnavailableError
from standards_mcp_catalog.local.backup import CatalogBackup
from standards_mcp_catalog.local.index import generation
from standards_mcp_catalog.local.index.engine import Engine
from standards_mcp_catalog.local.seeding import SeedSource
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.results import Seed

SETTING = r"set \[plugins.catalog\] path \(STANDARDS_MCP_PLUGINS__CATALOG__PATH\)"


@pytest.fixture
def seed() -> SeedSource:
    return SeedSource(
        name="small set",
        edition=lambda: "1",
        load=lambda: Seed(records=SMALL_CATALOG, model="m", hashes=(), vectors=np.zeros((0, 1))),
    )


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def as_owner() -> Generator[None]:
    """Act as the user who may write, inside `not_writable`."""
    user = os.geteuid()
    os.seteuid(os.getuid())
    try:
        yield
    finally:
        os.seteuid(user)


def backup_of(folder: Path) -> CatalogBackup:
    return CatalogBackup(folder, Engine(folder / "index", "none", None))


@pytest.mark.parametrize("place", ["file", "file/far/below"])
def test_a_path_that_is_no_folder_is_named_with_the_setting(
    tmp_path: Path, place: str, seed: SeedSource
):
    (tmp_path / "file").write_text("something else")
    for given in (None, seed):
        store = LocalStore(tmp_path / place, "none", seed=given)
        search, upsert = partial(store.search, "x"), partial(store.upsert, SMALL_CATALOG)
        for call in (store.stats, store.facets, store.build, search, upsert):
            with pytest.raises(CatalogUnavailableError, match=rf"file is not a folder; {SETTING}"):
                call()
    assert (tmp_path / "file").read_text() == "something else"


@pytest.mark.parametrize("name", ["catalog.sqlite3", "catalog.lock", "index"])
def test_what_is_in_the_place_of_a_part_is_named(tmp_path: Path, name: str):
    if name == "index":
        (tmp_path / name).write_text("no folder")
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(CatalogUnavailableError, match=rf"{tmp_path.name}.*{name}.*{SETTING}"):
        LocalStore(tmp_path, "none").upsert(SMALL_CATALOG)


@needs_permissions
def test_a_folder_that_cannot_be_written_is_named(shared: Path, seed: SeedSource):
    with not_writable(shared):
        store = LocalStore(shared / "catalog", "none", seed=seed)
        for call in (store.check, store.build, lambda: store.search("x")):
            with pytest.raises(CatalogUnavailableError, match=rf"Permission denied.*{SETTING}"):
                call()


@needs_permissions
class TestACatalogThatCannotBeWritten:
    @pytest.fixture
    def store(self, shared: Path, seed: SeedSource) -> Iterator[LocalStore]:
        with closing(LocalStore(shared, "none", seed=seed)) as writer:
            writer.upsert(SMALL_CATALOG)
            writer.search("fractions")
        with closing(LocalStore(shared, "none", seed=seed)) as store:
            yield store

    def test_is_searched_and_refuses_to_be_changed(self, store: LocalStore, shared: Path):
        before = sorted(path.name for path in shared.iterdir())
        with not_writable(shared):
            assert store.search("fractions", 2).hits
            assert [each.id for each in store.find("XQ.3")] == ["R003"]
            assert store.stats().records == 8
            store.check()
            with pytest.raises(CatalogUnavailableError, match=rf"Permission denied.*{SETTING}"):
                store.delete(["R001"])
            assert store.fetch(["R001"])
        assert sorted(path.name for path in shared.iterdir()) == before

    def test_shows_what_its_owner_changes(self, store: LocalStore, shared: Path):
        with not_writable(shared):
            assert store.fetch(["R001"])
        with closing(LocalStore(shared, "none")) as owner:
            owner.delete(["R001"])
        with not_writable(shared):
            assert store.fetch(["R001"]) == []
            assert store.search("fractions").notes == LocalStore(shared, "none").check()

    def test_is_saved_by_a_backup(self, store: LocalStore, shared: Path):
        store.close()
        with not_writable(shared), tempfile.TemporaryDirectory() as copy:
            backup_of(shared).save(Path(copy))
            with closing(LocalStore(Path(copy), "none")) as copied:
                assert copied.stats().records == len(SMALL_CATALOG)

    @pytest.mark.parametrize("moment", ["search for a journal", "copy"])
    def test_has_no_backup_of_half_a_change_of_its_owner(
        self, store: LocalStore, shared: Path, monkeypatch: pytest.MonkeyPatch, moment: str
    ):
        def change(*_: object) -> bool:
            with as_owner():
                os.utime(shared / "catalog.sqlite3")
            return True

        store.close()
        if moment == "copy":
            monkeypatch.setattr("standards_mcp_backup.databases._limit", lambda _path: change)
        else:
            monkeypatch.setattr("standards_mcp_backup.databases.may_be_immutable", change)
        with (
            not_writable(shared),
            tempfile.TemporaryDirectory() as copy,
            pytest.raises(BackupError, match="another process has written it meanwhile"),
        ):
            backup_of(shared).save(Path(copy))

    def test_is_read_again_when_a_change_of_its_owner_has_ended(
        self, store: LocalStore, shared: Path
    ):
        database, journal = shared / "catalog.sqlite3", shared / "catalog.sqlite3-wal"
        with not_writable(shared):
            assert store.fetch(["R001"])
            with as_owner():
                journal.write_bytes(b"x")
                os.utime(database)
            for _ in range(2):
                with pytest.raises(CatalogUnavailableError, match="cannot use"):
                    store.fetch(["R001"])
            with as_owner():
                journal.unlink()
            assert store.fetch(["R001"])

    def test_is_not_brought_to_a_newer_edition(
        self, store: LocalStore, shared: Path, seed: SeedSource
    ):
        newer = SeedSource(name=seed.name, edition=lambda: "2", load=seed.load)
        store.close()
        with not_writable(shared):
            assert LocalStore(shared, "none", seed=newer).search("fractions").hits


@needs_permissions
def test_others_on_the_machine_cannot_read_what_the_catalog_writes(shared: Path):
    umask = os.umask(0o022)
    try:
        with closing(LocalStore(shared / "new" / "catalog", "none")) as store:
            store.upsert(SMALL_CATALOG)
            assert open_to_others(shared / "new") == []
            store.delete(["R001"])
        assert open_to_others(shared / "new") == []
        (shared / "notes.txt").touch()
        LocalStore(shared, "none").upsert(SMALL_CATALOG)
        assert open_to_others(shared) == [shared, shared / "notes.txt"], "theirs stays as it is"
    finally:
        os.umask(umask)


def open_to_others(folder: Path) -> list[Path]:
    return [path for path in (folder, *sorted(folder.rglob("*"))) if path.stat().st_mode & 0o077]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "catalog", "none")) as store:
        store.upsert(SMALL_CATALOG)
        yield store


def test_a_full_disk_asks_for_space_and_keeps_nothing_of_the_new_index(
    filled: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    index = filled.folder.index
    before = sorted(path.name for path in index.iterdir())

    def fills(_database: object, folder: Path, *_: object) -> int:
        (folder / "vectors.npy").write_bytes(b"0" * 1000)
        raise ValueError("An IO error occurred: 'No space left on device (os error 28)'")

    monkeypatch.setattr(generation, "write_rows", fills)
    with pytest.raises(CatalogUnavailableError, match="the disk is full; free some") as caught:
        filled.build()
    assert "[plugins.catalog] path" not in str(caught.value)
    assert sorted(path.name for path in index.iterdir()) == before
    assert filled.search("fractions").hits
