"""Assemble the plugin's services over one database."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from standards_mcp import ApiError

from .audit import AuditLog
from .importing import import_files
from .indexing import Indexing
from .interactions import Coordinator, Interactions, SqliteCoordinator
from .matching import Matching
from .primitives import Clock, Ids, TimeIds, utc_now
from .resumes import Ingest, Limits
from .settings import CareerSettings
from .store import runs
from .store.database import Store
from .store.migrations import open_store
from .validation import Validation
from .vectors import Embedder, MemoryVectors, VectorStore, embedder_of


@dataclass(frozen=True, slots=True)
class Career:
    """The services behind the tools."""

    store: Store
    audit: AuditLog
    ids: Ids
    clock: Clock
    coordinator: Coordinator
    interactions: Interactions
    ingest: Ingest
    matching: Matching
    validation: Validation
    indexing: Indexing

    def close(self) -> None:
        """Close the database and Redis."""
        self.coordinator.close()
        self.store.close()


def open_career(settings: CareerSettings, *, reads_any_resume: bool = False) -> Career:
    """Open the database, Redis and vectors, and import the files of ``load``.

    Args:
        reads_any_resume: True for commands: their user may name any file.

    Raises:
        ApiError: The database cannot be opened, or a file of ``load`` has mistakes.
    """
    ids, clock = TimeIds(), utc_now
    with _closed_if_it_fails(open_store(settings.db)) as store:
        answer = import_files(store, settings.load, settings.tokens)
        for error in answer["errors"]:
            raise ApiError(f"plugins.career.load: {error['where']}: {error['message']}")
    audit = AuditLog(store, ids, clock)
    coordinator = _coordinator(settings, store)
    roots = None if reads_any_resume else settings.resume_roots
    limits = Limits(roots, settings.max_resume_bytes)
    embedder = embedder_of(settings.embedding)
    vectors = _vectors(settings, embedder)
    return Career(
        store=store,
        audit=audit,
        ids=ids,
        clock=clock,
        coordinator=coordinator,
        interactions=Interactions(coordinator, audit, ids),
        ingest=Ingest(store, audit, ids, clock, limits),
        matching=Matching(store, audit, ids, clock, embedder, vectors, tokens=settings.tokens),
        validation=Validation(store, audit, ids, settings.tokens),
        indexing=Indexing(store, audit, ids, clock, embedder, vectors),
    )


def start_career(settings: CareerSettings) -> Career:
    """Open the services for a server, and mark unfinished index runs as failed.

    Their server has ended.

    Raises:
        ApiError: As in `open_career`.
    """
    career = open_career(settings)
    with career.store.writing() as connection:
        runs.fail_running(connection)
    return career


def _vectors(settings: CareerSettings, embedder: Embedder | None) -> VectorStore:
    if embedder is None or settings.lancedb_path is None or settings.vector_backend != "lancedb":
        return MemoryVectors()
    from .lance_vectors import LanceVectors  # noqa: PLC0415

    return LanceVectors(settings.lancedb_path, embedder.source)


def _coordinator(settings: CareerSettings, store: Store) -> Coordinator:
    address = settings.redis_address()
    if address is None:
        return SqliteCoordinator(store)
    from .redis_coordinator import RedisCoordinator  # noqa: PLC0415

    return RedisCoordinator(store, address)


@contextmanager
def _closed_if_it_fails(store: Store) -> Generator[Store]:
    try:
        yield store
    except BaseException:
        store.close()
        raise
