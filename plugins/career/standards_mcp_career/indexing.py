"""Build the vector index of stored records, and log each run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from sqlite3 import Connection, Row
from typing import Any, Final

from standards_mcp import ApiError

from .answers import IndexAnswer, IndexCounts
from .audit import AuditLog
from .audit import Entry as AuditEntry
from .database import next_number, stored_object
from .primitives import compact_json, hash64
from .records import all_atoms, all_opportunities
from .resumes import all_resumes
from .settings import Scope
from .vectors import Embedder, Key, MemoryVectors, Source, StoredVector

_log = logging.getLogger("standards_mcp.plugins.career")
_SCOPES: Final[dict[Scope, tuple[str, ...]]] = {
    "all": ("atom", "resume", "opportunity"),
    "atoms": ("atom",),
    "resumes": ("resume",),
    "opps": ("opportunity",),
}
_BATCH_SIZE: Final = 256
_RUN_NUMBER: Final = "CAST(substr(run_id, 5) AS INTEGER)"
"""Orders runs by the number in their id, and not by time: clocks may go back."""
_RUN_FIELDS: Final = (
    "run_id, started_at, completed_at, provider_id, model_id, prompt_version, status, summary_json"
)
_SELECT_RUNS: Final = f"SELECT {_RUN_FIELDS} AS summary FROM index_runs"  # noqa: S608
_ENTRY_FIELDS: Final = "artifact_type, artifact_id, source_hash, vector_hash, indexed_at, stale"


@dataclass(frozen=True, slots=True)
class Entry:
    """An artifact that a run has indexed.

    Attributes:
        stale: True if the text has changed since the previous run.
    """

    artifact_type: str
    artifact_id: str
    source_hash: str
    vector_hash: str
    indexed_at: str | None
    stale: bool

    @property
    def key(self) -> Key:
        """The key of the artifact's vector."""
        return self.artifact_type, self.artifact_id


def fail_unfinished(connection: Connection) -> None:
    """Mark unfinished runs as failed, when a server starts, as if it were the only one."""
    connection.execute(
        "UPDATE index_runs SET status = 'failed' WHERE status IN ('pending', 'running')"
    )


def add_entries(connection: Connection, run_id: str, entries: Sequence[Entry]) -> None:
    """Store the entries of a run."""
    connection.executemany(
        f"INSERT INTO index_entries (run_id, {_ENTRY_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        ((run_id, *astuple(entry)) for entry in entries),
    )


def get_run(connection: Connection, run_id: str) -> dict[str, Any] | None:
    """Return a run with its entries, None for an unknown id."""
    row = connection.execute(f"{_SELECT_RUNS} WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        return None
    entries = list(map(asdict, entries_of(connection, run_id)))
    for entry in entries:
        del entry["indexed_at"]
    return {**_run_of(row), "entries": entries}


def all_runs(connection: Connection) -> list[dict[str, Any]]:
    """Return all runs, the oldest first."""
    return [_run_of(row) for row in connection.execute(f"{_SELECT_RUNS} ORDER BY {_RUN_NUMBER}")]


def _run_of(row: Row) -> dict[str, Any]:
    return {**dict(row), "summary": stored_object(row["summary"])}


def entries_of(connection: Connection, run_id: str) -> list[Entry]:
    """Return the entries of a run, by type and id."""
    rows = connection.execute(
        f"SELECT {_ENTRY_FIELDS} FROM index_entries "  # noqa: S608
        "WHERE run_id = ? ORDER BY artifact_type, artifact_id",
        (run_id,),
    )
    return [_entry_of(row) for row in rows]


def latest_entries(connection: Connection, source: Source) -> dict[Key, Entry]:
    """Return the newest entry of each artifact in completed runs, by the key of its vector."""
    rows = connection.execute(
        # With max(), SQLite returns the other columns of the row with the maximum.
        f"SELECT {_ENTRY_FIELDS}, max({_RUN_NUMBER}) FROM index_entries "  # noqa: S608
        "JOIN index_runs USING (run_id) "
        "WHERE status = 'completed' AND provider_id = ? AND model_id = ? AND prompt_version = ? "
        "GROUP BY artifact_type, artifact_id",
        source,
    )
    return {entry.key: entry for entry in map(_entry_of, rows)}


def _entry_of(row: Row) -> Entry:
    kind, identifier, source_hash, vector_hash, indexed_at, stale, *_ = row
    return Entry(kind, identifier, source_hash, vector_hash, indexed_at, bool(stale))


class Indexing:
    """Embeds stored records.

    Args:
        embedder: None without vectors.
    """

    def __init__(self, audit: AuditLog, embedder: Embedder | None, vectors: MemoryVectors) -> None:
        self._store, self._audit = audit.store, audit
        self._embedder, self._vectors = embedder, vectors
        self._build_lock = threading.Lock()

    def build(self, scope: Scope = "all", trace_id: str | None = None) -> IndexAnswer:
        """Embed new and changed records, and delete vectors of deleted records.

        Builds of one process run one after the other.

        Raises:
            ApiError: The database or the encoder fails; the run then has the status ``failed``.
        """
        with self._build_lock:
            return self._build(scope, trace_id)

    def _build(self, scope: Scope, trace_id: str | None) -> IndexAnswer:
        trace_id = self._audit.trace(trace_id)
        started = {"source": "app_service", "operation": "index_build", "scope": scope}
        self._audit.append(trace_id, "IndexBuildStarted", started)
        source = self._embedder.source if self._embedder else Source("none", "none", "none")
        with self._store.writing() as connection:
            run_id = f"run-{next_number(connection, 'run')}"
            connection.execute(
                f"INSERT INTO index_runs ({_RUN_FIELDS}) "  # noqa: S608
                "VALUES (?, ?, NULL, ?, ?, ?, 'running', '{}')",
                (run_id, self._audit.now(), *source),
            )
        run_started = {"run_id": run_id, "scope": scope, "provider_id": source.provider_id}
        self._audit.append(run_id, "IndexRunStarted", run_started)
        try:
            counts = self._run(run_id, source, _SCOPES[scope])
        except BaseException:
            with self._store.writing() as connection:
                self._end_run(connection, run_id, "failed", {})
            raise
        self._audit.append(trace_id, "IndexBuildCompleted", {"run_id": run_id, **counts})
        return {"run_id": run_id, "counts": counts, "trace_id": trace_id}

    def _end_run(
        self, connection: Connection, run_id: str, status: str, summary: Mapping[str, Any]
    ) -> None:
        connection.execute(
            "UPDATE index_runs SET status = ?, summary_json = ?, completed_at = ? WHERE run_id = ?",
            (status, compact_json(summary), self._audit.now(), run_id),
        )

    def _run(self, run_id: str, source: Source, kinds: Sequence[str]) -> IndexCounts:
        with self._store.reading() as connection:
            texts = {
                (kind, identifier): text
                for kind in kinds
                for identifier, text in _artifacts(connection, kind)
            }
            previous_entries = latest_entries(connection, source)
        stored = self._vectors.hashes()
        changed, skipped = list[Entry](), 0
        for (kind, identifier), text in texts.items() if self._embedder else ():
            source_hash = hash64(text)
            previous = previous_entries.get((kind, identifier))
            is_same = previous is not None and previous.source_hash == source_hash
            if is_same and stored.get((kind, identifier)) == source_hash:
                skipped += 1
                continue
            is_stale = previous is not None and not is_same
            entry = Entry(kind, identifier, source_hash, "", self._audit.now(), stale=is_stale)
            changed.append(entry)
        self._vectors.remove(key for key in stored if key[0] in kinds and key not in texts)
        entries = self._embed(self._embedder, changed, texts) if self._embedder else []
        try:
            self._vectors.clean_up()
        except ApiError as error:
            # The vectors are stored; the next build cleans up.
            _log.warning("cleanup after a build of the index: %s", error)
        counts: IndexCounts = {
            "indexed": len(entries),
            "skipped": skipped,
            "stale": sum(entry.stale for entry in entries),
        }
        self._complete_run(run_id, entries, counts)
        return counts

    def _embed(
        self, embedder: Embedder, entries: Sequence[Entry], texts: Mapping[Key, str]
    ) -> list[Entry]:
        """Embed artifacts, store the vectors, and return the entries with vector hashes."""
        embedded = list[Entry]()
        for start in range(0, len(entries), _BATCH_SIZE):
            batch = entries[start : start + _BATCH_SIZE]
            rows = embedder.embed([texts[entry.key] for entry in batch])
            pairs = list(zip(batch, rows, strict=True))
            self._vectors.put(
                {entry.key: StoredVector(entry.source_hash, row) for entry, row in pairs}
            )
            for entry, row in pairs:
                vector_hash = hash64(row.astype("<f4").tobytes())
                embedded.append(replace(entry, vector_hash=vector_hash))
        return embedded

    def _complete_run(self, run_id: str, entries: Sequence[Entry], counts: IndexCounts) -> None:
        names = ("artifact_type", "artifact_id", "source_hash", "stale")
        indexed = [
            AuditEntry("IndexedArtifact", {name: getattr(entry, name) for name in names})
            for entry in entries
        ]
        completed = AuditEntry("IndexRunCompleted", {"run_id": run_id, **counts})
        with self._store.writing() as connection:
            self._audit.write(connection, run_id, [*indexed, completed])
            add_entries(connection, run_id, entries)
            self._end_run(connection, run_id, "completed", counts)


def _artifacts(connection: Connection, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each record of a kind."""
    if kind == "atom":
        for atom in all_atoms(connection):
            yield atom.atom_id, " ".join([atom.title, atom.claim, *atom.tags])
    elif kind == "resume":
        for resume in all_resumes(connection):
            yield resume.resume_id, resume.markdown
    else:
        for record in all_opportunities(connection):
            requirements = (requirement.text for requirement in record.requirements)
            yield (
                record.opportunity_id,
                " ".join([record.role_title, record.company, *requirements]),
            )
