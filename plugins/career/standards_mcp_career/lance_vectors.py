"""Persistent vectors in a LanceDB folder.

Searches run in memory, as in `MemoryVectors`: LanceDB's own search omits zero vectors and rounds
differently, so reports would depend on the vector backend.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
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

# LanceDB's types use pyarrow, which has no type hints.
_LanceTable: TypeAlias = Any
_ArrowTable: TypeAlias = Any

_BATCH: Final = 500
_LOCK_TIMEOUT: Final = 30.0
_TABLE_ID: Final = b"standards_mcp_made"
# Another process may still read a version that this process has replaced.
_KEEP_VERSIONS: Final = timedelta(minutes=10)


class LanceVectors(MemoryVectors):
    """Vectors in one table for each encoder.

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
        self._loaded_version: tuple[bytes, int] | None = None

    @override
    def put(self, rows: Mapping[Key, StoredVector]) -> None:
        if not rows:
            return
        batch = _arrow_table(rows)
        with self._writing() as existing:
            table = existing
            if table is None or table.schema.field("vector").type != batch["vector"].type:
                schema = batch.schema.with_metadata({_TABLE_ID: uuid.uuid4().hex})
                database = self._database()
                table = database.create_table(self._name, schema=schema, mode="overwrite")
            merge = table.merge_insert("key").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(batch)

    @override
    def remove(self, keys: Iterable[Key]) -> None:
        hashes = [_key_hash(key) for key in keys]
        if not hashes:
            return
        with self._writing() as table:
            for start in range(0, len(hashes) if table is not None else 0, _BATCH):
                keys_sql = ", ".join(f"'{key}'" for key in hashes[start : start + _BATCH])
                table.delete(f"key IN ({keys_sql})")

    @override
    def clean_up(self) -> None:
        # Merge the small files of a build, and delete files of old versions.
        with self._writing() as table:
            if table is not None:
                table.optimize(cleanup_older_than=_KEEP_VERSIONS)

    @override
    def _refresh(self) -> None:
        with self._explained():
            table, version = self._table(), None
            if table is not None:
                version = table.schema.metadata[_TABLE_ID], table.version
            if version != self._loaded_version:
                # 10,000 vectors are read in 30 ms.
                self._replace(_read_rows(table) if table is not None else {})
                self._loaded_version = version

    def _database(self) -> Any:
        return import_module("lancedb").connect(self._folder)

    def _table(self) -> _LanceTable | None:
        # Open it each time, in 2 ms: a handle goes stale when another process writes.
        database = self._database()
        exists = self._name in database.list_tables().tables
        return database.open_table(self._name) if exists else None

    @contextmanager
    def _writing(self) -> Generator[_LanceTable]:
        """Yield the table, or None, and lock the folder against writes of other processes.

        LanceDB refuses some concurrent writes, and a table that is created twice is empty.
        """
        with self._explained(), self._lock:
            self._folder.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self._folder / f"{self._name}.lock", timeout=_LOCK_TIMEOUT):
                yield self._table()

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


def _key_hash(key: Key) -> str:
    """Return the hash of a key. Ids may have characters that LanceDB's conditions cannot quote."""
    kind, identifier = key
    return sha256(f"{kind}\0{identifier}".encode("utf-8", "surrogatepass")).hexdigest()


def _arrow_table(rows: Mapping[Key, StoredVector]) -> _ArrowTable:
    pa: Any = import_module("pyarrow")
    vectors = np.stack([stored.vector for stored in rows.values()]).astype(np.float32)
    return pa.table(
        {
            "key": [_key_hash(key) for key in rows],
            "kind": [kind for kind, _ in rows],
            "id": [identifier for _, identifier in rows],
            "source_hash": [stored.source_hash for stored in rows.values()],
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(vectors.ravel()), vectors.shape[1]
            ),
        }
    )


def _read_rows(table: _LanceTable) -> dict[Key, StoredVector]:
    data = table.to_arrow()
    numbers: Vectors = data["vector"].combine_chunks().flatten().to_numpy()
    if not len(data):
        return {}
    kinds, ids, hashes = (data[name].to_pylist() for name in ("kind", "id", "source_hash"))
    vectors = numbers.reshape(len(data), -1)
    stored = map(StoredVector, hashes, vectors)
    return dict(zip(zip(kinds, ids, strict=True), stored, strict=True))
