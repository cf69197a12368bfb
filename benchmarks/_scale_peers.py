"""The stores of other projects that `scale` measures, each in two processes of its own.

    python benchmarks/_scale_peers.py load|ask NAME FOLDER --minutes M [--rounds R]

FOLDER holds what our own measurement left there: `shared.json`, `fields.json` and `queries.npy`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from _scale_common import FILTERS, TOP, Filter, load, megabytes, memory, peak, rounds, save

Array = npt.NDArray[np.float32]
Fields = dict[str, list[Any]]


class Peer(Protocol):
    """A vector store in a folder. The number of a row is its id."""

    distribution: ClassVar[str]
    batch: ClassVar[int]

    def add(self, first: int, vectors: Array, fields: Fields) -> None:
        """Add rows; the number of the first is *first*."""

    def finish(self) -> None:
        """Do what is due after the last row."""

    def search(self, query: Array, wanted: Filter) -> list[int]:
        """Return the best rows."""
        ...


class LanceDb:
    """Without a vector index, which is exact; with scalar indexes on the fields."""

    distribution = "lancedb"
    batch = 50_000

    def __init__(self, folder: Path) -> None:
        import lancedb

        self._database = lancedb.connect(str(folder))
        there = (folder / "rows.lance").exists()
        self._table: Any = self._database.open_table("rows") if there else None

    def add(self, first: int, vectors: Array, fields: Fields) -> None:
        import pyarrow as pa

        flat = pa.array(vectors.ravel(), pa.float32())
        columns = {
            "row": pa.array(range(first, first + len(vectors)), pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        }
        table = pa.table(columns | fields)
        if self._table is None:
            self._table = self._database.create_table("rows", table)
        else:
            self._table.add(table)

    def finish(self) -> None:
        from lancedb.index import Bitmap, LabelList

        for name in ("subject", "standard_set_id"):
            self._table.create_index(name, config=Bitmap())
        self._table.create_index("education_levels", config=LabelList())
        self._table.optimize()

    def search(self, query: Array, wanted: Filter) -> list[int]:
        found = self._table.search(query).distance_type("cosine").select(["row", "_distance"])
        conditions = [_lance_condition(name, list(values)) for name, values in wanted.items()]
        if conditions:
            found = found.where(" AND ".join(conditions), prefilter=True)
        return [int(row) for row in found.limit(TOP).to_arrow()["row"].to_pylist()]


def _lance_condition(name: str, values: list[str]) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    is_list = name == "education_levels"
    return f"array_has_any({name}, [{listed}])" if is_list else f"{name} IN ({listed})"


class Chroma:
    """The persistent client: HNSW with its defaults, which is approximate."""

    distribution = "chromadb"
    batch = 5_000

    def __init__(self, folder: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._rows = client.get_or_create_collection(
            "rows", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, first: int, vectors: Array, fields: Fields) -> None:
        numbers = range(len(vectors))
        metadatas = [
            {"subject": fields["subject"][row], "standard_set_id": fields["standard_set_id"][row]}
            | {f"level {level}": True for level in fields["education_levels"][row]}
            for row in numbers
        ]
        ids = [str(first + row) for row in numbers]
        self._rows.add(ids=ids, embeddings=vectors, metadatas=metadatas)

    def finish(self) -> None:
        pass

    def search(self, query: Array, wanted: Filter) -> list[int]:
        conditions = [_chroma_condition(name, list(values)) for name, values in wanted.items()]
        where: Any = {"$and": conditions} if len(conditions) > 1 else next(iter(conditions), None)
        found = self._rows.query(query_embeddings=[query], n_results=TOP, where=where, include=[])
        return [int(id_) for id_ in found["ids"][0]]


def _chroma_condition(name: str, values: list[str]) -> dict[str, Any]:
    if name == "education_levels":
        return {"$or": [{f"level {value}": True} for value in values]}
    return {name: {"$in": values}}


class Qdrant:
    """The local mode of the client: exact, in memory, in Python."""

    distribution = "qdrant-client"
    batch = 2_000

    def __init__(self, folder: Path) -> None:
        from qdrant_client import QdrantClient, models

        self._models = models
        self._client = QdrantClient(path=str(folder))
        if not self._client.collection_exists("rows"):
            size = models.VectorParams(size=384, distance=models.Distance.COSINE)
            self._client.create_collection("rows", vectors_config=size)

    def add(self, first: int, vectors: Array, fields: Fields) -> None:
        ids = list(range(first, first + len(vectors)))
        payloads = [{name: fields[name][row] for name in fields} for row in range(len(ids))]
        batch = self._models.Batch(ids=ids, vectors=vectors.tolist(), payloads=payloads)
        self._client.upsert("rows", batch)

    def finish(self) -> None:
        self._client.close()

    def search(self, query: Array, wanted: Filter) -> list[int]:
        conditions = [
            self._models.FieldCondition(key=name, match=self._models.MatchAny(any=list(values)))
            for name, values in wanted.items()
        ]
        found = self._client.query_points(
            "rows", query=query.tolist(), limit=TOP, with_payload=False,
            query_filter=self._models.Filter(must=conditions) if conditions else None,
        )  # fmt: skip
        return [int(point.id) for point in found.points]


PEERS: dict[str, Callable[[Path], Peer]] = {"lancedb": LanceDb, "chroma": Chroma, "qdrant": Qdrant}


def load_rows(folder: Path, name: str, minutes: float) -> None:
    """Load a peer, and give up as soon as the rest, at the same speed, would be too late."""
    shared = load(folder / "shared.json")
    vectors = np.load(shared["vectors"], mmap_mode="r")
    fields: Fields = load(folder / "fields.json")
    shutil.rmtree(folder / name, ignore_errors=True)
    start = time.perf_counter()
    peer = PEERS[name](folder / name)
    for first in range(0, len(vectors), peer.batch):
        rows = slice(first, first + peer.batch)
        peer.add(first, np.array(vectors[rows]), {each: fields[each][rows] for each in fields})
        seconds, done = time.perf_counter() - start, first + peer.batch
        if seconds > 60 and seconds * len(vectors) / done > minutes * 60:
            sys.exit(f"{name}: {done:,} rows took {seconds:.0f} s; the load would take too long")
    peer.finish()
    facts = {
        "version": importlib.metadata.version(peer.distribution), "disk": megabytes(folder / name),
        "build": round(time.perf_counter() - start), "build peak": peak(),
        **shared,
    }  # fmt: skip
    save(folder / f"{name}.built.json", facts)


def ask(folder: Path, name: str, minutes: float, count: int) -> None:
    """Open a peer that is loaded, and search."""
    queries = list(np.load(folder / "queries.npy"))
    start = time.perf_counter()
    peer = PEERS[name](folder / name)
    peer.search(queries[0], {})
    facts: dict[str, Any] = {"first": round((time.perf_counter() - start) * 1000)}
    facts["times"] = {
        each: rounds(lambda query, w=wanted: peer.search(query, w), queries, count, minutes * 60)
        for each, wanted in FILTERS.items()
    }
    facts["private"], facts["peak"] = memory(), peak()
    facts["found"] = {
        each: [peer.search(query, wanted) for query in queries[:20]]
        for each, wanted in FILTERS.items()
    }
    save(folder / f"{name}.asked.json", facts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One of the peers of `scale`.")
    parser.add_argument("task", choices=["load", "ask"])
    parser.add_argument("name", choices=sorted(PEERS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    try:
        if given.task == "load":
            load_rows(given.folder, given.name, given.minutes)
        else:
            ask(given.folder, given.name, given.minutes, given.rounds)
    except ImportError as error:
        sys.exit(f"{given.name}: {error}; run `pip install lancedb chromadb qdrant-client`")
