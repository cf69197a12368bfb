"""Vectors: the stub to the last bit, runs of the index, and what is near."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from standards_mcp import ApiError
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.indexing import Indexing
from standards_mcp_career.primitives import hash64
from standards_mcp_career.records import (
    Atom,
    Entry,
    Opportunity,
    Requirement,
    Run,
)
from standards_mcp_career.tables import find, scan, upsert
from standards_mcp_career.vectors import (
    STUB_EMBEDDER,
    Embedder,
    MemoryVectors,
    StoredVector,
    embedder_of,
)
from standards_mcp_encoders import Vectors

OPS = Atom(
    "a-ops",
    title="Platform operations",
    claim="Ran Kafka clusters for billing",
    tags=("kafka", "terraform"),
)
POSITION = Opportunity("o-1", "Reed Works", "Engineer", requirements=(Requirement("Kafka"),))


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest, open_new: Callable[[str], Store]) -> Store:
    return open_new(request.param)


def indexing(audit: AuditLog, vectors: MemoryVectors, spec: str = "stub") -> Indexing:
    return Indexing(audit, embedder_of(spec), vectors)


def add(store: Store, *records: Atom) -> None:
    with store.writing() as connection:
        upsert(connection, records)


def test_the_stub_makes_the_vector_that_other_programs_make():
    (vector,) = STUB_EMBEDDER.embed(["kafka kafka rust"])
    assert (vector.dtype, vector.shape) == (np.float32, (128,))
    assert vector[[39, 97]].tolist() == np.float32([0.41169348, 0.82338697]).tolist()
    assert vector[[38, 40]] == pytest.approx(0.3 * 0.41169348)
    assert hash64(vector.astype("<f4").tobytes()) == "d531843a3fc51bda"
    assert not STUB_EMBEDDER.embed(["? !"]).any()
    assert STUB_EMBEDDER.embed([]).shape == (0, 128)


def test_an_artifact_is_indexed_once_and_again_when_it_changes(store: Store, audit: AuditLog):
    vectors = MemoryVectors()
    add(store, OPS)
    with store.writing() as connection:
        upsert(connection, [POSITION])
    index = indexing(audit, vectors)
    first = index.build("all", "mine")
    assert first["counts"] == {"indexed": 2, "skipped": 0, "stale": 0}
    assert first["run_id"] == "run-0"
    with store.reading() as connection:
        (entry, _) = scan(connection, Entry, "run-0")
        run = find(connection, Run, "run-0")
    assert (entry.artifact_id, entry.source_hash) == ("a-ops", "88ebfec3f0059ca0")
    assert run is not None
    assert (run.status, run.summary) == ("completed", first["counts"])
    assert index.build()["counts"] == {"indexed": 0, "skipped": 2, "stale": 0}
    add(store, Atom("a-ops", claim="Ran trains"))
    assert index.build("atoms")["counts"] == {"indexed": 1, "skipped": 0, "stale": 1}
    assert index.build("opps")["counts"] == {"indexed": 0, "skipped": 1, "stale": 0}
    told = [each["event_type"] for each in audit.page("mine")["events"]]
    assert told == ["IndexBuildStarted", "IndexBuildCompleted"]
    of_run = [(each["event_type"], each["payload"]) for each in audit.page("run-0")["events"]]
    assert [name for name, _ in of_run] == [
        "IndexRunStarted",
        "IndexedArtifact",
        "IndexedArtifact",
        "IndexRunCompleted",
    ]
    assert of_run[0][1] == {"run_id": "run-0", "scope": "all", "provider_id": "deterministic-stub"}
    assert of_run[1][1] == {
        "artifact_type": "atom",
        "artifact_id": "a-ops",
        "source_hash": "88ebfec3f0059ca0",
        "stale": False,
    }


def test_vectors_that_are_gone_are_made_again(store: Store, audit: AuditLog):
    add(store, OPS)
    indexing(audit, MemoryVectors()).build()
    again = indexing(audit, MemoryVectors()).build()
    assert again["counts"] == {"indexed": 1, "skipped": 0, "stale": 0}
    assert again["run_id"] == "run-1"


def test_a_vector_of_another_text_is_made_again(store: Store, audit: AuditLog):
    vectors, beside = MemoryVectors(), MemoryVectors()
    add(store, OPS)
    indexing(audit, vectors).build()
    add(store, Atom("a-ops", claim="Ran trains"))
    indexing(audit, beside).build()  # another process, with vectors of its own
    again = indexing(audit, vectors).build()
    assert again["counts"] == {"indexed": 1, "skipped": 0, "stale": 0}
    (now,) = STUB_EMBEDDER.embed(["Ran trains"])
    assert vectors.table("atom", 128).cosines(np.array([now])).tolist() == [[1]]


def test_builds_at_one_time_leave_the_vectors_of_what_is_stored(store: Store, audit: AuditLog):
    def embed(texts: Sequence[str]) -> Vectors:
        rows = STUB_EMBEDDER.embed(texts)
        if not changed.is_set():
            changed.set()
            time.sleep(0.3)
        return rows

    changed = threading.Event()
    vectors = MemoryVectors()
    add(store, OPS)
    index = Indexing(audit, Embedder(STUB_EMBEDDER.source, embed), vectors)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(index.build)
        changed.wait(10)
        add(store, Atom("a-ops", claim="Ran trains"))
        index.build()
        first.result()
    assert vectors.hashes() == {("atom", "a-ops"): hash64(" Ran trains")}


def test_what_is_stored_no_more_leaves_the_vectors_of_its_scope(store: Store, audit: AuditLog):
    vectors, row = MemoryVectors(), np.ones(128, np.float32)
    vectors.put(
        {("atom", "gone"): StoredVector("", row), ("resume", "kept"): StoredVector("", row)}
    )
    add(store, OPS)
    indexing(audit, vectors).build("atoms")
    assert set(vectors.hashes()) == {("atom", "a-ops"), ("resume", "kept")}


def test_a_run_that_fails_is_called_so_and_counts_for_nothing(store: Store, audit: AuditLog):
    def embed(_: object) -> Vectors:
        raise ApiError("no encoder")

    add(store, OPS)
    vectors = MemoryVectors()
    with pytest.raises(ApiError, match="no encoder"):
        Indexing(audit, Embedder(STUB_EMBEDDER.source, embed), vectors).build("all", "t")
    with store.reading() as connection:
        (run,) = scan(connection, Run)
    assert run.status == "failed"
    assert [each["event_type"] for each in audit.page("t")["events"]] == ["IndexBuildStarted"]
    assert indexing(audit, vectors).build()["counts"]["indexed"] == 1


def test_a_build_counts_when_tidying_up_fails(
    store: Store, audit: AuditLog, caplog: pytest.LogCaptureFixture
):
    class Untidy(MemoryVectors):
        def clean_up(self) -> None:
            raise ApiError("another process writes")

    logging.getLogger("standards_mcp").propagate = True
    add(store, OPS)
    vectors = Untidy()
    assert indexing(audit, vectors).build()["counts"]["indexed"] == 1
    assert "cleanup after a build of the index: another process writes" in caplog.text
    with store.reading() as connection:
        assert [run.status for run in scan(connection, Run)] == ["completed"]


def test_without_an_encoder_nothing_gets_a_vector(store: Store, audit: AuditLog):
    add(store, OPS)
    vectors = MemoryVectors()
    counts = indexing(audit, vectors, "none").build()["counts"]
    assert counts == {"indexed": 0, "skipped": 0, "stale": 0}
    assert not vectors.hashes()


def test_the_built_in_encoder_is_another_source(store: Store, audit: AuditLog):
    add(store, OPS)
    vectors = MemoryVectors()
    indexing(audit, vectors).build()
    minilm = indexing(audit, vectors, "minilm").build()
    assert minilm["counts"] == {"indexed": 1, "skipped": 0, "stale": 0}
    assert vectors.table("atom", 384).rows.any()


def test_a_vector_of_another_dimension_and_a_zero_vector_are_near_to_nothing():
    vectors = MemoryVectors()
    rows = {"c": [1, 0], "a": [2, 0], "zero": [0, 0], "b": [0, 1], "odd": [1, 0, 0], "far": [-1, 0]}
    vectors.put(
        {("atom", key): StoredVector("", np.array(row, np.float32)) for key, row in rows.items()}
    )
    vectors.put({("resume", "r"): StoredVector("", np.array([1, 0], np.float32))})
    table = vectors.table("atom", 2)
    near = table.cosines(np.array([[3, 0], [0, 0]], np.float32))
    assert dict(zip(table.ids, near[0], strict=True)) == {
        "a": 1,
        "b": 0,
        "c": 1,
        "far": -1,
        "odd": 0,
        "zero": 0,
    }
    assert not near[1].any()
    vectors.remove([("atom", "a")])
    assert "a" not in vectors.table("atom", 2).ids


def test_the_hash_of_bytes_is_that_of_their_text():
    assert hash64(b"standards") == hash64("standards") == "320eae479033c641"
