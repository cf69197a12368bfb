from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.records import SMALL_CATALOG, record
from support.snapshots import ZEBRAS, Place

from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.local.index import generation
from standards_mcp_catalog.local.seeding import SeedSource
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.relations import Crosswalk, CrosswalkLinks, Link
from standards_mcp_catalog.results import Seed
from standards_mcp_catalog.snapshots import pulling
from standards_mcp_catalog.snapshots.format import SnapshotError, public_text
from standards_mcp_catalog.snapshots.publishing import publish
from standards_mcp_catalog.snapshots.pulling import pull
from standards_mcp_catalog.snapshots.sources import open_source


def test_a_node_searches_the_same_records_and_a_second_pull_reads_nothing(place: Place):
    assert place.pull().is_new
    assert [each.id for each in place.node.records()] == [each.id for each in SMALL_CATALOG]
    assert place.node.search("fractions", 3) == place.publisher.search("fractions", 3)
    again = place.pull()
    assert (again.is_new, again.downloaded) == (False, 0)
    assert [path.name for path in (place.node.folder.path / "pull").iterdir()] == ["lock"]


def test_a_catalog_that_is_open_searches_and_lists_what_was_pulled(place: Place):
    place.node.upsert([ZEBRAS])  # the same revision as the publisher's
    assert place.node.facets().subjects == {"Mathematics": 1}
    assert place.node.suggest("XQ.98")[0].id == ZEBRAS.id
    assert place.node.database.revision == place.publisher.database.revision
    other = LocalStore(place.node.folder.path, "none")  # as in another process
    assert other.search("zebras", 1).hits
    place.pull(replace_own=True)
    for store in (place.node, other):
        assert [hit.record.id for hit in store.search("zebras fractions", 1).hits] != [ZEBRAS.id]
        assert store.facets().subjects == {"Mathematics": 4, "Language Arts": 2, "Science": 2}
        assert store.suggest("XQ.98")[0].id != ZEBRAS.id
        assert store.stats().details["index"] == "current"
    other.close()
    place.publisher.upsert([ZEBRAS])
    place.publish()
    place.pull()
    assert place.descriptions() == [ZEBRAS.description]


def test_only_changed_parts_are_downloaded(place: Place):
    whole = place.pull().downloaded
    link = Link("id:r000", "isRelatedTo", "id:r001")
    crosswalk = CrosswalkLinks(Crosswalk("c", "C"), [link], False)
    place.publisher.write((), crosswalks=[crosswalk])
    place.publish()
    folder = generation.current_folder(place.node.folder.index)
    # The database changes, the index does not.
    assert place.pull().downloaded == place.manifest().files["catalog.sqlite3"].size < whole
    assert generation.current_folder(place.node.folder.index) == folder
    assert place.node.database.relations.crosswalks() == [(Crosswalk("c", "C"), 1)]
    place.publisher.build()
    place.publish()
    assert place.pull().downloaded < whole - place.manifest().files["catalog.sqlite3"].size


def test_changes_of_a_copy_are_refused_and_it_can_be_exported(place: Place):
    place.pull()
    seed = Seed(records=[ZEBRAS], model="m", hashes=(), vectors=np.zeros((0, 1)))
    source = SeedSource(name="zebras", edition=lambda: "2", load=lambda: seed)
    seeded = LocalStore(place.node.folder.path, "none", seed=source)
    for change in (
        lambda: place.node.upsert([ZEBRAS]),
        lambda: place.node.delete(["R000"]),
        lambda: place.node.remove_crosswalk("c"),
        place.node.build,
        place.node.check_changeable,
        seeded.load_seed,
        lambda: publish(place.node, place.folder, Ed25519PrivateKey.generate()),
    ):
        with pytest.raises(CatalogError, match=r"is a copy of snapshot|did not publish"):
            change()
    assert [each.id for each in seeded.records()] == [each.id for each in SMALL_CATALOG]
    assert "snapshot" in seeded.stats().details["copy"]
    seeded.close()


def test_a_newer_seed_does_not_change_a_copy(place: Place, tmp_path: Path):
    def source(edition: str, records: list[Any]) -> SeedSource:
        seed = Seed(records=records, model="m", hashes=(), vectors=np.zeros((0, 1)))
        return SeedSource(name="seed", edition=lambda: edition, load=lambda: seed)

    publisher = LocalStore(tmp_path / "seeded", "none", seed=source("1", SMALL_CATALOG))
    place.publisher.close()
    place.publisher = publisher
    shutil.rmtree(place.folder)
    place.publish()
    place.pull()
    node = LocalStore(place.node.folder.path, "none", seed=source("2", [*SMALL_CATALOG, ZEBRAS]))
    assert len([*node.records()]) == len(SMALL_CATALOG)
    node.close()


def test_records_of_the_users_own_are_replaced_only_when_that_is_asked_for(place: Place):
    place.node.upsert([ZEBRAS])
    with pytest.raises(SnapshotError, match="add --replace"):
        place.pull()
    assert place.descriptions() == [ZEBRAS.description]
    assert place.pull(replace_own=True).is_new
    assert place.node.fetch([ZEBRAS.id]) == []


def test_a_seeded_catalog_is_replaced_unless_a_seeded_record_was_changed(
    place: Place, tmp_path: Path
):
    seed = Seed(records=[ZEBRAS], model="m", hashes=(), vectors=np.zeros((0, 1)))
    source = SeedSource(name="zebras", edition=lambda: "1", load=lambda: seed)
    for name, changed in (("untouched", False), ("changed", True)):
        place.node.close()
        place.node = LocalStore(tmp_path / name, "none", seed=source)
        assert place.descriptions() == [ZEBRAS.description]
        if changed:
            place.node.upsert([record(99, "Count lions.")])
            with pytest.raises(SnapshotError, match="add --replace"):
                place.pull()
        else:
            assert place.pull().is_new


def test_an_older_snapshot_is_refused(place: Place, tmp_path: Path):
    shutil.copytree(place.folder, tmp_path / "old")
    place.publisher.upsert([ZEBRAS])
    place.publish()
    place.pull()
    with pytest.raises(SnapshotError, match="which is older than snapshot"):
        place.pull(tmp_path / "old")
    assert place.descriptions() == [ZEBRAS.description]


def test_a_new_publisher_needs_a_new_key_in_the_settings(place: Place, tmp_path: Path):
    place.pull()
    key = Ed25519PrivateKey.generate()
    place.publisher.upsert([ZEBRAS])
    publish(place.publisher, tmp_path / "new", key)
    with pytest.raises(SnapshotError, match="is not signed by"):
        place.pull(tmp_path / "new")
    pull(place.node, open_source(str(tmp_path / "new")), public_text(key))
    assert place.descriptions() == [ZEBRAS.description]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": 1}, "install the same version"),
        ({"index_version": 99}, "install the same version"),
        ({"model": "fastembed:x"}, r"'fastembed:x', and the model here is None"),
        ({"version": 2}, "has version 2 of the format"),
        ({"records": 3}, "do not fit together"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_refused(place: Place, changes: Any, message: str):
    place.pull()
    place.publisher.upsert([ZEBRAS])
    place.publish()
    place.sign(**changes)
    with pytest.raises(SnapshotError, match=message):
        place.pull()
    assert [each.id for each in place.node.records()] == [each.id for each in SMALL_CATALOG]
    assert place.node.stats().details["index"] == "current"


def test_too_little_room_is_said_before_anything_is_downloaded(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024
    monkeypatch.setattr(pulling.shutil, "disk_usage", lambda _: usage(1, 1, 1000))
    with pytest.raises(SnapshotError, match=r"needs [\d,]+ bytes .* and 1,000 are free"):
        place.pull()


def test_two_pulls_at_once_are_refused(place: Place):
    place.pull()
    with (
        filelock.FileLock(place.node.folder.path / "pull" / "lock"),
        pytest.raises(SnapshotError, match="another `data pull`"),
    ):
        place.pull()


def test_a_damaged_index_is_repaired_with_the_damaged_part_only(place: Place):
    place.pull()
    folder = generation.current_folder(place.node.folder.index)
    (folder / "columns.npz").write_bytes(b"x")
    repaired = place.pull()
    assert 0 < repaired.downloaded == place.manifest().files["index/columns.npz"].size
    assert place.node.search("fractions", 1).hits


@pytest.mark.parametrize("moment", ["overwrite_database", "mark", "install"])
def test_a_failure_while_parts_are_swapped_leaves_the_old_catalog_and_the_next_pull_ends_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, moment: str
):
    place.pull()
    place.publisher.upsert([ZEBRAS])
    place.publish()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if moment == "install":
            patch.setattr(generation, "_write_aside", fail)
        else:
            patch.setattr(pulling, moment, fail)
        with pytest.raises(CatalogError, match="disk is full"):
            place.pull()
    assert [each.id for each in place.node.records()] == [each.id for each in SMALL_CATALOG]
    assert place.node.stats().details["index"] == "current"
    assert len([*place.node.folder.index.glob("g*")]) == 1
    # All but the database, which got its mark, was kept.
    assert place.pull().downloaded <= place.manifest().files["catalog.sqlite3"].size
    assert place.descriptions() == [ZEBRAS.description]


def test_a_kill_before_the_pointer_changes_is_completed_by_the_next_pull(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    place.pull()
    place.publisher.upsert([ZEBRAS])
    place.publish()

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(generation, "with_retries", killed)
        with pytest.raises(KeyboardInterrupt):
            place.pull()
    assert "outdated" in place.node.stats().details["index"]
    completed = place.pull()
    assert (completed.is_new, completed.downloaded) == (True, 0)
    assert place.descriptions() == [ZEBRAS.description]
    assert place.node.stats().details["index"] == "current"
