"""The embedded catalog: no key, no network, one folder.

Importing this module is cheap; NumPy, the index and the model load with the first search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp.filters import FilterExpression
from standards_mcp_catalog.base import (
    Catalog,
    CatalogStats,
    Facets,
    FieldValues,
    SearchResult,
    StandardSets,
)
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import KINDS, StatedRelation

from .seeding import SeedSource

if TYPE_CHECKING:
    from .store import LocalStore

MAX_THREADS: Final = 16
"""How many calls of embedded catalogs work at a time in one event loop; others wait."""
_LIMITER: Final = RunVar[CapacityLimiter]("threads of embedded catalogs")
_T = TypeVar("_T")


class LocalCatalog(Catalog):
    """A `Catalog` in one folder; the arguments are those of `store.LocalStore`.

    Every call runs in a worker thread. A cancelled call returns at once and its thread ends later.
    """

    def __init__(
        self,
        path: Path,
        model: str = "minilm",
        *,
        key: SecretStr | None = None,
        seed: SeedSource | None = None,
        lock_timeout: float = 600,
    ) -> None:
        def open_store() -> LocalStore:
            from .store import LocalStore  # noqa: PLC0415  - with the first use

            return LocalStore(path, model, key=key, seed=seed, lock_timeout=lock_timeout)

        self._open_store = open_store
        self._lock = threading.Lock()
        self._store: LocalStore | None = None

    @property
    def store(self) -> LocalStore:
        """The synchronous store behind this catalog, for programs that show progress."""
        with self._lock:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    @override
    async def search(
        self, query_text: str, top_k: int = 5, filter: FilterExpression | None = None
    ) -> SearchResult:
        return await _in_thread(lambda: self.store.search(query_text, top_k, filter))

    @override
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        return await _in_thread(lambda: self.store.fetch(ids))

    @override
    async def find(self, identifier: str) -> list[StandardRecord]:
        return await _in_thread(lambda: self.store.find(identifier))

    @override
    async def relations(
        self, records: Sequence[StandardRecord], kinds: Collection[str] = KINDS, limit: int = 50
    ) -> list[tuple[StatedRelation, ...]]:
        return await _in_thread(lambda: self.store.relations(records, kinds, limit))

    @override
    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        return await _in_thread(lambda: self.store.suggest(identifier, limit))

    @override
    async def select(self, filter: FilterExpression, limit: int) -> list[StandardRecord]:
        return await _in_thread(lambda: self.store.select(filter, limit))

    @override
    async def sets(self) -> StandardSets:
        return await _in_thread(lambda: StandardSets(sets=tuple(self.store.sets())))

    @override
    async def facets(self) -> Facets:
        return await _in_thread(lambda: self.store.facets())  # noqa: PLW0108  the thread opens the store

    @override
    async def values(self, name: str) -> FieldValues:
        return await _in_thread(lambda: self.store.values(name))

    @override
    async def stats(self) -> CatalogStats:
        return await _in_thread(lambda: self.store.stats())  # noqa: PLW0108  as above

    @override
    async def check(self) -> tuple[str, ...]:
        return await _in_thread(lambda: self.store.check())  # noqa: PLW0108  as above

    @override
    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        return await _in_thread(lambda: self.store.upsert(records))

    @override
    async def delete(self, ids: Iterable[str]) -> int:
        return await _in_thread(lambda: self.store.delete(ids))

    async def aclose(self) -> None:
        """Release what the catalog holds open; the next call opens it again."""
        if self._store is not None:
            await _in_thread(self._store.close)


async def _in_thread(call: Callable[[], _T]) -> _T:
    # The limiter is the catalogs' own, since others can use up the default one of an event loop.
    try:
        limiter = _LIMITER.get()
    except LookupError:
        limiter = CapacityLimiter(MAX_THREADS)
        _LIMITER.set(limiter)
    return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
