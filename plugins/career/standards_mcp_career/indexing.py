"""Build the vector index of stored records, and log each run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from standards_mcp import ApiError

from .audit import AuditLog
from .audit import Entry as AuditEntry
from .primitives import Clock, Ids, hash64
from .schemas import IndexAnswer, IndexCounts
from .settings import Scope
from .store import runs
from .store.database import Store, next_number
from .store.repositories import all_atoms, all_opportunities, all_resumes
from .store.runs import Entry, Run
from .vectors import Embedder, Kept, Key, VectorStore, vector_hash

_log = logging.getLogger("standards_mcp.plugins.career")
_SCOPES: Final[dict[Scope, tuple[str, ...]]] = {
    "all": ("atom", "resume", "opportunity"),
    "atoms": ("atom",),
    "resumes": ("resume",),
    "opps": ("opportunity",),
}
_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class Artifact:
    """A record to embed."""

    kind: str
    identifier: str
    text: str

    @property
    def key(self) -> Key:
        """The vector's key."""
        return self.kind, self.identifier

    @property
    def source_hash(self) -> str:
        """The hash of the text."""
        return hash64(self.text)


class Indexing:
    """Embeds stored records.

    Args:
        embedder: None without vectors.
    """

    def __init__(
        self,
        store: Store,
        audit: AuditLog,
        ids: Ids,
        clock: Clock,
        embedder: Embedder | None,
        vectors: VectorStore,
    ) -> None:
        self._store, self._audit, self._ids, self._clock = store, audit, ids, clock
        self._embedder, self._vectors = embedder, vectors
        self._building = threading.Lock()

    def build(self, scope: Scope = "all", trace_id: str | None = None) -> IndexAnswer:
        """Embed new and changed records, and delete vectors of deleted records.

        Builds run one after the other.

        Raises:
            ApiError: The database or the encoder fails; the run then has the status ``failed``.
        """
        with self._building:
            return self._build(scope, trace_id)

    def _build(self, scope: Scope, trace_id: str | None) -> IndexAnswer:
        drawn = self._ids.new("trace")
        trace_id = trace_id or drawn
        started = {"source": "app_service", "operation": "index_build", "scope": scope}
        self._audit.append(trace_id, "IndexBuildStarted", started)
        run = self._start(scope)
        try:
            counts = self._run(run, scope)
        except BaseException:
            with self._store.writing() as connection:
                runs.set_status(connection, run.run_id, "failed", completed_at=self._clock())
            raise
        completed = {"run_id": run.run_id, **counts}
        self._audit.append(trace_id, "IndexBuildCompleted", completed)
        return {"run_id": run.run_id, "counts": counts, "trace_id": trace_id}

    def _start(self, scope: Scope) -> Run:
        source = self._embedder.source if self._embedder else runs.Source("none", "none", "none")
        with self._store.writing() as connection:
            run = Run(
                run_id=f"run-{next_number(connection, 'run')}",
                started_at=self._clock(),
                completed_at=None,
                provider_id=source.provider_id,
                model_id=source.model_id,
                prompt_version=source.prompt_version,
                status="running",
                summary={},
            )
            runs.start(connection, run)
        begun = {"run_id": run.run_id, "scope": scope, "provider_id": source.provider_id}
        self._audit.append(run.run_id, "IndexRunStarted", begun)
        return run

    def _run(self, run: Run, scope: Scope) -> IndexCounts:
        source = runs.Source(run.provider_id, run.model_id, run.prompt_version)
        with self._store.reading() as connection:
            artifacts = list(_artifacts(connection, _SCOPES[scope]))
            before = {
                (kind, identifier): entry
                for kind in _SCOPES[scope]
                for identifier, entry in runs.latest(connection, kind, source).items()
            }
        kept = self._vectors.hashes()
        changed, entries, skipped = list[Artifact](), list[Entry](), 0
        for artifact in artifacts if self._embedder else ():
            previous = before.get(artifact.key)
            is_same = previous is not None and previous.source_hash == artifact.source_hash
            if is_same and kept.get(artifact.key) == artifact.source_hash:
                skipped += 1
            else:
                changed.append(artifact)
                is_stale = previous is not None and not is_same
                entries.append(self._entry(artifact, is_stale=is_stale))
        self._forget(artifacts, scope)
        if self._embedder:
            entries = self._embedded(self._embedder, changed, entries)
        self._settle()
        counts: IndexCounts = {
            "indexed": len(entries),
            "skipped": skipped,
            "stale": sum(entry.stale for entry in entries),
        }
        self._complete(run, entries, counts)
        return counts

    def _settle(self) -> None:
        try:
            self._vectors.settle()
        except ApiError as error:
            # The vectors are stored; the next build cleans up.
            _log.warning("after a build of the index: %s", error)

    def _entry(self, artifact: Artifact, *, is_stale: bool) -> Entry:
        return Entry(
            artifact_type=artifact.kind,
            artifact_id=artifact.identifier,
            source_hash=artifact.source_hash,
            vector_hash="",
            indexed_at=self._clock(),
            stale=is_stale,
        )

    def _embedded(
        self, embedder: Embedder, artifacts: Sequence[Artifact], entries: Sequence[Entry]
    ) -> list[Entry]:
        """Store the vectors of artifacts, and return their entries with vector hashes."""
        done = list[Entry]()
        for start in range(0, len(artifacts), _BATCH):
            batch = artifacts[start : start + _BATCH]
            rows = embedder.embed([artifact.text for artifact in batch])
            pairs = zip(batch, rows, strict=True)
            self._vectors.put(
                {artifact.key: Kept(artifact.source_hash, row) for artifact, row in pairs}
            )
            for entry, row in zip(entries[start : start + _BATCH], rows, strict=True):
                done.append(replace(entry, vector_hash=vector_hash(row)))
        return done

    def _forget(self, artifacts: Sequence[Artifact], scope: Scope) -> None:
        existing = {artifact.key for artifact in artifacts}
        kept = self._vectors.hashes()
        self._vectors.remove(
            key for key in kept if key[0] in _SCOPES[scope] and key not in existing
        )

    def _complete(self, run: Run, entries: Sequence[Entry], counts: IndexCounts) -> None:
        indexed = [
            AuditEntry(
                "IndexedArtifact",
                {
                    "artifact_type": entry.artifact_type,
                    "artifact_id": entry.artifact_id,
                    "source_hash": entry.source_hash,
                    "stale": entry.stale,
                },
            )
            for entry in entries
        ]
        completed = {"run_id": run.run_id, **counts}
        events = [*indexed, AuditEntry("IndexRunCompleted", completed)]
        with self._store.writing() as connection:
            self._audit.write(connection, run.run_id, events)
            runs.add_entries(connection, run.run_id, entries)
            runs.set_status(connection, run.run_id, "completed", counts, self._clock())


def _artifacts(connection: Connection, kinds: Iterable[str]) -> Iterable[Artifact]:
    for kind in kinds:
        if kind == "atom":
            for atom in all_atoms(connection):
                text = " ".join([atom.title, atom.claim, *atom.tags])
                yield Artifact(kind, atom.atom_id, text)
        elif kind == "resume":
            for resume in all_resumes(connection):
                yield Artifact(kind, resume.resume_id, resume.markdown)
        else:
            for opportunity in all_opportunities(connection):
                parts = [
                    opportunity.role_title,
                    opportunity.company,
                    *(requirement.text for requirement in opportunity.requirements),
                ]
                yield Artifact(kind, opportunity.opportunity_id, " ".join(parts))
