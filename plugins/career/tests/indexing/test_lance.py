"""Vectors in a folder of LanceDB: kept, shared, deleted, damaged."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import filelock
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standards_mcp import ApiError
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.indexing import Indexing
from standards_mcp_career.lance_vectors import LanceVectors
from standards_mcp_career.primitives import hash64
from standards_mcp_career.records import Atom
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.tables import upsert
from standards_mcp_career.vectors import STUB_EMBEDDER, Key, MemoryVectors, Source, StoredVector

OTHER = Source("catalog", "minilm", "none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "made" / "vectors"


@pytest.fixture
def vectors(folder: Path) -> LanceVectors:
    return LanceVectors(folder, STUB_EMBEDDER.source)


def row(*numbers: float, of: str = "text") -> StoredVector:
    return StoredVector(hash64(of), np.array(numbers, np.float32))


def test_vectors_are_there_for_another_process(vectors: LanceVectors, folder: Path):
    assert not vectors.hashes()
    vectors.put({("atom", "a"): row(3, 4), ("atom", "zero"): row(0, 0), ("resume", "r"): row(1, 0)})
    vectors.put({})
    other = LanceVectors(folder, STUB_EMBEDDER.source)
    assert other.hashes().keys() == {("atom", "a"), ("atom", "zero"), ("resume", "r")}
    assert other.table("atom", 2).rows.tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_a_change_by_another_is_seen(vectors: LanceVectors, folder: Path):
    other = LanceVectors(folder, STUB_EMBEDDER.source)
    vectors.put({("atom", "a"): row(1, 0)})
    assert list(other.table("atom", 2).ids) == ["a"]
    vectors.put({("atom", "a"): row(0, 1), ("atom", "b"): row(1, 0)})
    assert other.table("atom", 2).cosines(np.array([[0, 1]], np.float32)).tolist() == [[1, 0]]
    other.remove([("atom", "a"), ("atom", "never there")])
    other.clean_up()
    assert set(vectors.hashes()) == {("atom", "b")}


def test_each_encoder_has_vectors_of_its_own(vectors: LanceVectors, folder: Path):
    minilm = LanceVectors(folder, OTHER)
    vectors.put({("atom", "a"): row(1, 0)})
    minilm.put({("atom", "b"): row(1, 0, 0)})
    assert (set(vectors.hashes()), set(minilm.hashes())) == ({("atom", "a")}, {("atom", "b")})


def test_an_encoder_that_changes_its_dimension_begins_anew(vectors: LanceVectors):
    vectors.put({("atom", "a"): row(1, 0)})
    vectors.put({("atom", "b"): row(1, 0, 0)})
    assert set(vectors.hashes()) == {("atom", "b")}


def test_a_deleted_folder_is_built_again(
    store: Store, audit: AuditLog, vectors: LanceVectors, folder: Path
):
    def build() -> tuple[int, int]:
        index = Indexing(audit, STUB_EMBEDDER, vectors)
        counts = index.build()["counts"]
        return counts["indexed"], counts["skipped"]

    with store.writing() as connection:
        upsert(connection, [Atom("a-ops", claim="Ran trains")])
    assert [build(), build()] == [(1, 0), (0, 1)]
    shutil.rmtree(folder)
    assert not vectors.hashes()
    assert build() == (1, 0)
    assert set(vectors.hashes()) == {("atom", "a-ops")}


@pytest.mark.filterwarnings("ignore:optimize:UserWarning")
def test_a_build_leaves_few_files(
    vectors: LanceVectors, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in range(60):
        vectors.put({("atom", str(number)): row(1, number)})
    assert len(list(folder.glob("*/data/*"))) >= 60
    vectors.clean_up()  # joins them; others may still read the old ones
    monkeypatch.setattr(
        "standards_mcp_career.lance_vectors._KEEP_VERSIONS", timedelta(microseconds=1)
    )
    vectors.clean_up()
    assert len(list(folder.glob("*/data/*"))) == 1
    assert len(vectors.hashes()) == 60


def test_writers_at_one_time_lose_nothing(folder: Path):
    def write(number: int) -> None:
        one = LanceVectors(folder, STUB_EMBEDDER.source)
        for each in range(5):
            one.put({("atom", f"{number}-{each}"): row(number, each)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(LanceVectors(folder, STUB_EMBEDDER.source).hashes()) == 20


def test_whoever_changes_vectors_waits_for_another_process_that_does(
    vectors: LanceVectors, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    vectors.put({("atom", "a"): row(1, 0)})
    monkeypatch.setattr("standards_mcp_career.lance_vectors._LOCK_TIMEOUT", 0.05)
    (lock,) = folder.glob("*.lock")
    with filelock.FileLock(lock):
        for change in (
            lambda: vectors.put({("atom", "b"): row(1, 0)}),
            lambda: vectors.remove([("atom", "a")]),
            vectors.clean_up,
        ):
            with pytest.raises(ApiError, match=r"another process has been writing.*try again"):
                change()
        assert set(vectors.hashes()) == {("atom", "a")}
    vectors.remove([("atom", "a")])
    assert not vectors.hashes()


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.tuples(st.sampled_from(["atom", "resume"]), st.text()), st.integers(0, 9))
)
def test_any_id_is_kept_and_removed(folder: Path, known: dict[Key, int]):
    shutil.rmtree(folder, ignore_errors=True)
    vectors, memory = LanceVectors(folder, OTHER), MemoryVectors()
    for kept in (vectors, memory):
        kept.put({key: row(1, number) for key, number in known.items()})
    for kind in ("atom", "resume"):
        assert vectors.table(kind, 2).ids == memory.table(kind, 2).ids
    vectors.remove(list(known))
    assert not vectors.hashes()


def test_an_id_of_a_megabyte_with_quotes_is_kept_and_removed(vectors: LanceVectors):
    key = ("atom", "'\"\n\0é" * 200_000)
    vectors.put({key: row(1, 0)})
    assert vectors.hashes() == {key: hash64("text")}
    vectors.remove([key])
    assert not vectors.hashes()


def test_what_cannot_be_used_is_told_with_its_setting(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("no folder", "utf-8")
    with pytest.raises(ApiError, match=r"check plugins\.career\.lancedb_path"):
        LanceVectors(file, OTHER).put({("atom", "a"): row(1)})


def test_damaged_files_are_told_not_answered_from(vectors: LanceVectors, folder: Path):
    vectors.put({("atom", "a"): row(1, 0)})
    for file in folder.rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"no vectors")
    with pytest.raises(ApiError, match="build the index again"):
        LanceVectors(folder, STUB_EMBEDDER.source).hashes()


def test_a_folder_is_required_and_the_library_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with pytest.raises(ValueError, match="needs lancedb_path, a folder"):
        CareerSettings(vector_backend="lancedb")
    monkeypatch.setattr("standards_mcp_career.settings.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"run `.* install .*\[lancedb\]"):
        CareerSettings(vector_backend="lancedb", lancedb_path=tmp_path)
