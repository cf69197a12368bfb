"""Build the vector index of stored records, and log each run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any, Final

from standards_mcp import ApiError

from .answers import IndexAnswer, IndexCounts
from .audit import AuditLog
from .audit import Entry as AuditEntry
from .database import Connection, Store
from .primitives import compact_json, hash64
from .records import Atom, Entry, Opportunity, Resume
from .settings import Scope
from .tables import NEWEST_RUN_FIRST, insert, next_number, scan
from .vectors import Embedder, Key, MemoryVectors, Source, StoredVector

_log = logging.getLogger("standards_mcp.plugins.career")
_SCOPES: Final[dict[Scope, tuple[str, ...]]] = {
    "all": ("atom", "resume", "opportunity"),
    "atoms": ("atom",),
    "resumes": ("resume",),
    "opps": ("opportunity",),
}
_BATCH_SIZE: Final = 256


def fail_unfinished(store: Store) -> None:
    """Mark unfinished runs as failed, when a server starts, unless another node builds them."""
    with store.writing() as connection:
        connection.execute(
            "UPDATE index_runs SET status = 'failed' "  # noqa: S608
            f"WHERE status IN ('pending', 'running') AND {store.is_abandoned}"
        )


def latest_hashes(connection: Connection, source: Source) -> dict[Key, str]:
    """Return the newest source hash of each artifact in completed runs."""
    rows = connection.execute(
        "SELECT artifact_type, artifact_id, source_hash FROM ("  # noqa: S608
        "SELECT artifact_type, artifact_id, source_hash, row_number() OVER "
        f"(PARTITION BY artifact_type, artifact_id ORDER BY {NEWEST_RUN_FIRST}) AS place "
        "FROM index_entries JOIN index_runs USING (run_id) "
        "WHERE status = 'completed' AND provider_id = ? AND model_id = ? AND prompt_version = ?"
        ") AS entries WHERE place = 1",
        source,
    )
    return {(kind, identifier): source_hash for kind, identifier, source_hash in rows}


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
        with self._build_lock, ExitStack() as claims:
            trace_id = self._audit.trace(trace_id)
            started = {"source": "app_service", "operation": "index_build", "scope": scope}
            self._audit.append(trace_id, "IndexBuildStarted", started)
            source = self._embedder.source if self._embedder else Source("none", "none", "none")
            with self._store.writing() as connection:
                run_id = f"run-{next_number(connection, 'run')}"
                # Before other nodes see the run.
                claims.enter_context(self._store.claim(run_id))
                row = {"run_id": run_id, "started_at": self._audit.now(), "status": "running"}
                insert(connection, "index_runs", [{**row, "summary": {}, **source._asdict()}])
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
            texts = {(kind, name): text for kind, name, text in _artifacts(connection, kinds)}
            previous_hashes = latest_hashes(connection, source)
        stored = self._vectors.hashes()
        entries, skipped = list[Entry](), 0
        for (kind, identifier), text in texts.items() if self._embedder else ():
            source_hash, previous = hash64(text), previous_hashes.get((kind, identifier))
            if previous == source_hash == stored.get((kind, identifier)):
                skipped += 1
            else:
                is_stale = previous not in (None, source_hash)
                entries.append(Entry(kind, identifier, source_hash, "", is_stale))
        self._vectors.remove(key for key in stored if key[0] in kinds and key not in texts)
        if self._embedder:
            entries = self._embed(self._embedder, entries, texts)
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
        events, rows = list[AuditEntry](), list[dict[str, Any]]()
        for entry in entries:
            row = asdict(entry)
            rows.append({"run_id": run_id, "indexed_at": self._audit.now(), **row})
            payload = {name: value for name, value in row.items() if name != "vector_hash"}
            events.append(AuditEntry("IndexedArtifact", payload))
        events.append(AuditEntry("IndexRunCompleted", {"run_id": run_id, **counts}))
        with self._store.writing() as connection:
            self._audit.write(connection, run_id, events)
            insert(connection, "index_entries", rows)
            self._end_run(connection, run_id, "completed", counts)
        return counts

    def _embed(
        self, embedder: Embedder, entries: Sequence[Entry], texts: Mapping[Key, str]
    ) -> list[Entry]:
        """Embed artifacts, store the vectors, and return the entries with vector hashes."""
        embedded = list[Entry]()
        for start in range(0, len(entries), _BATCH_SIZE):
            batch, vectors = entries[start : start + _BATCH_SIZE], dict[Key, StoredVector]()
            keys = [(entry.artifact_type, entry.artifact_id) for entry in batch]
            rows = embedder.embed([texts[key] for key in keys])
            for key, entry, row in zip(keys, batch, rows, strict=True):
                vectors[key] = StoredVector(entry.source_hash, row)
                vector_hash = hash64(row.astype("<f4").tobytes())
                embedded.append(replace(entry, vector_hash=vector_hash))
            self._vectors.put(vectors)
        return embedded


def _artifacts(connection: Connection, kinds: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, id and text of each record of some kinds."""
    if "atom" in kinds:
        for atom in scan(connection, Atom):
            yield "atom", atom.atom_id, " ".join([atom.title, atom.claim, *atom.tags])
    if "resume" in kinds:
        for resume in scan(connection, Resume):
            yield "resume", resume.resume_id, resume.markdown
    if "opportunity" in kinds:
        for record in scan(connection, Opportunity):
            texts = [
                record.role_title,
                record.company,
                *(part.text for part in record.requirements),
            ]
            yield "opportunity", record.opportunity_id, " ".join(texts)
