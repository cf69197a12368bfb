"""Persistent vectors in a LanceDB folder.

Searches run in memory, as in `MemoryVectors`: LanceDB's own search omits zero vectors and rounds
differently, so reports would depend on the vector backend.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import filelock
import numpy as np
from typing_extensions import override

from standards_mcp import ApiError
from standards_mcp_encoders import Vectors

from .primitives import hash64
from .vectors import Key, MemoryVectors, Source, StoredVector

_LanceTable: TypeAlias = Any  # LanceDB's types use pyarrow, which has no type hints.
_LOCK_TIMEOUT: Final = 30.0
_CONTENT_ID: Final = b"standards_mcp_made"
# Another process may still read a version that this process has replaced.
_KEEP_VERSIONS: Final = timedelta(minutes=10)


class LanceVectors(MemoryVectors):
    """Vectors in one table for each encoder, with an id for each content.

    Processes may share the folder. The folder may be deleted at any time: the next build of the
    index makes it again.

    Args:
        folder: The folder of the database, created if it is missing.
        source: The encoder of the vectors.
    """

    @override
    def __init__(self, folder: Path, source: Source) -> None:
        super().__init__()
        self._folder = folder
        self._name = f"vectors-{hash64(f'{source.provider_id}/{source.model_id}')}"
        self._loaded_id: bytes | None = None

    @override
    @contextmanager
    def _changing(self) -> Generator[None]:
        # LanceDB refuses some concurrent writes, so processes write one after the other.
        with self._explained(), self._lock:
            self._folder.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self._folder / f"{self._name}.lock", timeout=_LOCK_TIMEOUT):
                self._refresh()
                yield

    @override
    def _replace(self, rows: dict[Key, StoredVector]) -> None:
        # One overwritten table: 10,000 vectors are written in 30 ms, as fast as they are merged.
        pa: Any = import_module("pyarrow")
        dimension = len(next(reversed(rows.values())).vector) if rows else 0
        kept = {key: row for key, row in rows.items() if len(row.vector) == dimension}
        vectors = np.array([row.vector for row in kept.values()], dtype=np.float32)
        content_id = uuid.uuid4().hex.encode()
        data = pa.table(
            {
                "kind": pa.array([kind for kind, _ in kept], pa.string()),
                "id": pa.array([identifier for _, identifier in kept], pa.string()),
                "source_hash": pa.array([row.source_hash for row in kept.values()], pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(vectors.ravel()), max(1, dimension)
                ),
            }
        ).replace_schema_metadata({_CONTENT_ID: content_id})
        self._database().create_table(self._name, data, mode="overwrite")
        super()._replace(kept)
        self._loaded_id = content_id

    @override
    def clean_up(self) -> None:
        # Delete the files of old versions.
        with self._changing():
            if (table := self._table()) is not None:
                table.optimize(cleanup_older_than=_KEEP_VERSIONS)

    @override
    def _refresh(self) -> None:
        with self._explained():
            table = self._table()
            content_id = None if table is None else table.schema.metadata[_CONTENT_ID]
            if content_id == self._loaded_id:
                return
            rows = dict[Key, StoredVector]()
            if table is not None:
                data = table.to_arrow()  # 10,000 vectors are read in 30 ms
                numbers: Vectors = data["vector"].combine_chunks().flatten().to_numpy()
                keys = zip(data["kind"].to_pylist(), data["id"].to_pylist(), strict=True)
                vectors = numbers.reshape(len(data), -1) if len(data) else ()
                stored = map(StoredVector, data["source_hash"].to_pylist(), vectors)
                rows = dict(zip(keys, stored, strict=True))
            super()._replace(rows)
            self._loaded_id = content_id

    def _database(self) -> Any:
        return import_module("lancedb").connect(self._folder)

    def _table(self) -> _LanceTable | None:
        # Open it each time, in 2 ms: a handle goes stale when another process writes.
        database = self._database()
        exists = self._name in database.list_tables().tables
        return database.open_table(self._name) if exists else None

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except filelock.Timeout as error:
            raise ApiError(
                f"The vectors in {self._folder} cannot be changed: another process has been "
                f"writing there for {_LOCK_TIMEOUT:.0f} s; try again"
            ) from error
        # LanceDB raises RuntimeError and ValueError for errors of its files and folder.
        except (OSError, RuntimeError, ValueError) as error:
            raise ApiError(
                f"The vectors in {self._folder} cannot be used: {error}; check "
                "plugins.career.lancedb_path, or delete the folder and build the index again"
            ) from error
