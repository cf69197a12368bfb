"""Assemble the plugin's services over one database."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from standards_mcp import ApiError

from .addresses import RedisAddress
from .audit import AuditLog
from .database import Store
from .importing import import_files
from .indexing import Indexing, fail_unfinished
from .interactions import Coordinator
from .matching import Matching
from .resumes import Limits
from .schema import open_store
from .settings import CareerSettings
from .vectors import MemoryVectors, embedder_of


@dataclass(frozen=True, slots=True)
class Career:
    """The services behind the tools.

    Attributes:
        limits: Limits for the files of `ingest_resume`.
    """

    store: Store
    audit: AuditLog
    coordinator: Coordinator
    limits: Limits
    matching: Matching
    indexing: Indexing

    def close(self) -> None:
        """Close the database and Redis."""
        self.coordinator.close()
        self.store.close()


def open_career(settings: CareerSettings, *, is_server: bool = False) -> Career:
    """Open the database, Redis and vectors, and import the files of ``load``.

    Args:
        is_server: True to read resumes of ``resume_roots`` only, and to mark unfinished runs of
            the index as failed, if the server that began them has ended. False for commands.

    Raises:
        ApiError: The database cannot be opened, or a file of ``load`` has mistakes.
    """
    embedder, vectors, address = embedder_of(settings.embedding), MemoryVectors(), settings.redis
    if embedder and settings.lancedb_path and settings.vector_backend == "lancedb":
        from .lance_vectors import LanceVectors  # noqa: PLC0415  - it is an extra

        vectors = LanceVectors(settings.lancedb_path, embedder.source)
    with ExitStack() as closing_on_error:
        store = open_store(settings.database)
        closing_on_error.callback(store.close)
        for error in import_files(store, settings.load, settings.tokens)["errors"]:
            raise ApiError(f"plugins.career.load: {error['where']}: {error['message']}")
        if is_server:
            fail_unfinished(store)
        coordinator = Coordinator(store)
        if address is not None:
            from .redis_coordinator import RedisCoordinator  # noqa: PLC0415  - few need it

            coordinator = RedisCoordinator(store, RedisAddress.parse(address.get_secret_value()))
        audit = AuditLog(store)
        career = Career(
            store,
            audit,
            coordinator,
            Limits(settings.resume_roots if is_server else None, settings.max_resume_bytes),
            Matching(audit, embedder, vectors, settings.tokens),
            Indexing(audit, embedder, vectors),
        )
        closing_on_error.pop_all()
        return career
