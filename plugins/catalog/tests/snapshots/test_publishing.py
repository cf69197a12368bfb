from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.snapshots import KEY, ZEBRAS, Place

from standards_mcp_catalog.snapshots import format as snapshot_format
from standards_mcp_catalog.snapshots import publishing
from standards_mcp_catalog.snapshots.format import (
    MANIFEST,
    PIECES,
    SnapshotError,
    digest_of,
    public_text,
)
from standards_mcp_catalog.snapshots.keys import private_key
from standards_mcp_catalog.snapshots.publishing import publish


def pieces_of(place: Place) -> set[str]:
    return {path.name for path in (place.folder / PIECES).iterdir()}


def listed(place: Place) -> set[str]:
    return {digest for file in place.manifest().files.values() for digest in file.pieces}


def test_every_piece_is_listed_and_named_by_its_content(place: Place):
    assert {path.name for path in place.folder.iterdir()} == {MANIFEST, PIECES}
    assert pieces_of(place) == listed(place)
    for path in (place.folder / PIECES).iterdir():
        assert digest_of(path.read_bytes()) == path.name


def test_without_changes_nothing_is_written_and_the_counter_stays(place: Place):
    before = (place.folder / MANIFEST).read_bytes()
    result = place.publish()
    assert not result.is_new
    assert result.written == 0
    assert (place.folder / MANIFEST).read_bytes() == before


def test_the_counter_grows_and_the_pieces_of_the_last_snapshot_stay(place: Place):
    first, first_pieces = place.manifest(), pieces_of(place)
    place.publisher.upsert([ZEBRAS])
    assert place.publish().is_new
    second, second_pieces = place.manifest(), listed(place)
    assert second.counter > first.counter
    assert pieces_of(place) == first_pieces | second_pieces
    place.publisher.delete([ZEBRAS.id])
    place.publish()
    assert pieces_of(place) == second_pieces | listed(place)
    assert place.manifest().counter > second.counter


def test_the_counter_grows_even_if_the_clock_was_set_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    before = place.manifest().counter
    monkeypatch.setattr(publishing.time, "time", lambda: 1.0)
    place.publisher.upsert([ZEBRAS])
    assert place.publish().manifest.counter == before + 1


def test_deleted_texts_are_not_published(place: Place):
    place.publisher.upsert([ZEBRAS])
    place.publisher.delete([ZEBRAS.id])
    place.publish()
    content = b"".join(path.read_bytes() for path in (place.folder / PIECES).iterdir())
    assert b"Retell a folk tale" in content
    assert b"zebras" not in content


def test_vectors_of_deleted_texts_are_not_published(place: Place):
    def hashes(path: Path) -> set[str]:
        with closing(sqlite3.connect(path)) as database:
            return {hash_ for (hash_,) in database.execute("SELECT text_hash FROM embeddings")}

    place.publisher.upsert([ZEBRAS])
    database = place.publisher.database
    texts = database.texts_without_vector("m")
    database.add_vectors("m", [(hash_, b"vector") for hash_, _ in texts])
    place.publisher.delete([ZEBRAS.id])
    place.publish()
    place.pull()
    removed = {hash_ for hash_, text in texts if text == ZEBRAS.description}
    assert len(removed) == 1
    assert hashes(place.node.folder.database) == {hash_ for hash_, _ in texts} - removed
    assert hashes(place.publisher.folder.database) == {hash_ for hash_, _ in texts}
    content = b"".join(path.read_bytes() for path in (place.folder / PIECES).iterdir())
    assert removed.pop().encode() not in content


def test_a_damaged_piece_is_written_again(place: Place):
    damaged = next((place.folder / PIECES).iterdir())
    damaged.write_bytes(b"x")
    assert place.publish().written > 1
    assert digest_of(damaged.read_bytes()) == damaged.name


def test_a_folder_of_another_publisher_is_left_alone(place: Place):
    before = (place.folder / MANIFEST).read_bytes()
    with pytest.raises(SnapshotError, match=r"did not publish.*publisher\.pem"):
        publish(place.publisher, place.folder, Ed25519PrivateKey.generate())
    assert (place.folder / MANIFEST).read_bytes() == before


def test_leftovers_of_a_killed_run_are_removed(place: Place):
    scratch = place.folder / ".standards-mcp-new"
    scratch.mkdir()
    (scratch / "catalog.sqlite3").write_bytes(b"half")
    (place.folder / PIECES / ("0" * 64)).write_bytes(b"never listed")
    (place.folder / PIECES / "mine").write_bytes(b"of the user's own")
    place.publisher.upsert([ZEBRAS])
    place.publish()
    assert {path.name for path in place.folder.iterdir()} == {MANIFEST, PIECES}
    assert "0" * 64 not in pieces_of(place)
    assert "mine" in pieces_of(place)


def test_an_index_that_an_import_left_behind_is_built_before(place: Place):
    database = sqlite3.connect(place.publisher.folder.database)
    database.execute("UPDATE state SET value = value + 1 WHERE key = 'revision'")
    database.commit()
    database.close()
    assert place.publish().is_new
    place.pull()
    assert place.node.stats().details["index"] == "current"


def test_a_folder_that_cannot_be_written_is_an_error_with_the_reason(place: Place, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(SnapshotError, match="cannot publish to"):
        publish(place.publisher, tmp_path / "file" / "below", KEY)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_the_first_call_makes_a_private_key_that_only_its_owner_can_read(tmp_path: Path):
    folder = tmp_path / "state"
    key = private_key(folder)
    path = folder / "publisher.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public_text(private_key(folder)) == public_text(key)
    path.chmod(0o640)
    with pytest.raises(SnapshotError, match="other users can read"):
        private_key(folder)


@pytest.mark.parametrize("content", [b"", b"no key", "rsa"])
def test_a_file_that_is_no_key_is_an_error(tmp_path: Path, content: bytes | str):
    if content == "rsa":
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        content = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    path = tmp_path / "publisher.pem"
    path.write_bytes(content)
    os.chmod(path, 0o600)  # noqa: PTH101
    with pytest.raises(SnapshotError, match=r"publisher\.pem"):
        private_key(tmp_path)


def test_a_file_above_the_size_of_a_piece_has_several(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    for module in (publishing, snapshot_format):
        monkeypatch.setattr(module, "PIECE_BYTES", 4096)
    shutil.rmtree(place.folder)
    place.publish()
    assert len(place.manifest().files["catalog.sqlite3"].pieces) > 10
    place.pull()
    assert place.node.search("fractions", 1).hits


def test_the_manifest_can_be_read_by_others(place: Place):
    content = json.loads((place.folder / MANIFEST).read_bytes())
    KEY.public_key().verify(
        bytes.fromhex(content["signature"]),
        b"standards-mcp snapshot\n" + content["manifest"].encode(),
    )
    assert json.loads(content["manifest"])["records"] == len(place.publisher.fetch(["R000"])) + 7
