from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.snapshots import ZEBRAS, Place

from standards_mcp_catalog.local.backup import CatalogBackup
from standards_mcp_catalog.local.index.engine import Engine
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.snapshots.format import SnapshotError


def backup_of(store: LocalStore) -> CatalogBackup:
    path = store.folder.path
    return CatalogBackup(path, Engine(path / "index", "none", None))


def test_a_restored_copy_is_pulled_as_a_whole_and_never_from_an_older_snapshot(
    place: Place, tmp_path: Path
):
    place.pull()
    saved, older = tmp_path / "saved", tmp_path / "older"
    saved.mkdir()
    backup_of(place.node).save(saved)
    shutil.copytree(place.folder, older)
    place.publisher.upsert([ZEBRAS])
    place.publish()
    place.pull()
    with backup_of(place.node).restoring(saved) as replace:
        replace()
    assert place.descriptions() != [ZEBRAS.description]
    with pytest.raises(SnapshotError, match="older than snapshot"):
        place.pull(older)
    assert place.pull().is_new
    assert place.descriptions() == [ZEBRAS.description]
    assert place.node.stats().details["index"] == "current"
    assert not place.pull().is_new


def test_only_the_restore_itself_creates_a_missing_database(place: Place, tmp_path: Path):
    saved = tmp_path / "saved"
    saved.mkdir()
    backup_of(place.publisher).save(saved)
    with backup_of(place.node).restoring(saved):
        assert not place.node.folder.database.exists()
    assert not place.node.folder.database.exists()
    with backup_of(place.node).restoring(saved) as replace:
        replace()
    assert place.node.search("fractions", 3) == place.publisher.search("fractions", 3)
    assert place.node.stats().details["index"] == "current"
