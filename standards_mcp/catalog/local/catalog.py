"""The embedded catalog: no key, no network, one folder.

Importing this module is cheap; NumPy, the index and the model load with the first search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from pydantic import SecretStr

from standards_mcp.catalog.base import (
    CatalogStats,
    Facets,
    FieldValues,
    FilterExpression,
    SearchResult,
    StandardSets,
)
from standards_mcp.catalog.records import StandardRecord

from .seeding import SeedSource

if TYPE_CHECKING:
    from .store import LocalStore

MAX_THREADS: Final = 16
"""How many calls of embedded catalogs work at a time in one event loop; others wait."""
_LIMITER: Final = RunVar[CapacityLimiter]("threads of embedded catalogs")
_T = TypeVar("_T")


class LocalCatalog:
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
        self._arguments = partial(_open_store, path, model, key, seed, lock_timeout)
        self._lock = threading.Lock()
        self._store: LocalStore | None = None

    @property
    def store(self) -> LocalStore:
        """The synchronous store behind this catalog, for programs that show progress."""
        with self._lock:
            if self._store is None:
                self._store = self._arguments()
            return self._store

    async def search(
        self,
        query_text: str,
        top_k: int = 5,
        filter: FilterExpression | None = None,  # noqa: A002
    ) -> SearchResult:
        """Return the *top_k* best records for a text, see `Catalog.search`."""
        return await _in_thread(lambda: self.store.search(query_text, top_k, filter))

    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""
        return await _in_thread(lambda: self.store.fetch(ids))

    async def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that a GUID, an ASN id, a CASE URI or a notation names."""
        return await _in_thread(lambda: self.store.find(identifier))

    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records whose notation is nearest to one that `find` did not know."""
        return await _in_thread(lambda: self.store.suggest(identifier, limit))

    async def select(self, filter: FilterExpression, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return the records that a filter lets through, in the order of their ids."""
        return await _in_thread(lambda: self.store.select(filter, limit))

    async def sets(self) -> StandardSets:
        """Return the standard sets."""
        return await _in_thread(lambda: StandardSets(sets=tuple(self.store.sets())))

    async def facets(self) -> Facets:
        """Return the values that the catalog really holds."""
        return await _in_thread(lambda: self.store.facets())  # noqa: PLW0108  the thread opens the store

    async def values(self, name: str) -> FieldValues:
        """Return the texts that a field has, which a filter may ask for."""
        return await _in_thread(lambda: self.store.values(name))

    async def stats(self) -> CatalogStats:
        """Return what the catalog holds and where."""
        return await _in_thread(lambda: self.store.stats())  # noqa: PLW0108  as above

    def notes(self) -> tuple[str, ...]:
        """Return nothing: no other store ever answers."""
        return ()

    async def check(self) -> tuple[str, ...]:
        """Try what a search needs, and return the notes that it would have."""
        return await _in_thread(lambda: self.store.check())  # noqa: PLW0108  as above

    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        """Add or replace records, make them searchable, and return how many changed."""
        return await _in_thread(lambda: self.store.upsert(records))

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete the records with these ids and return how many there were."""
        return await _in_thread(lambda: self.store.delete(ids))

    async def aclose(self) -> None:
        """Release what the catalog holds open; the next call opens it again."""
        if self._store is not None:
            await _in_thread(self._store.close)


def _open_store(
    path: Path,
    model: str,
    key: SecretStr | None,
    seed: SeedSource | None,
    lock_timeout: float,
) -> LocalStore:
    from .store import LocalStore  # noqa: PLC0415  it imports this module

    return LocalStore(path, model, key=key, seed=seed, lock_timeout=lock_timeout)


async def _in_thread(call: Callable[[], _T]) -> _T:
    return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=_limiter())


def _limiter() -> CapacityLimiter:
    """Return this event loop's limiter for catalogs: others can use up the default one."""
    try:
        return _LIMITER.get()
    except LookupError:
        _LIMITER.set(CapacityLimiter(MAX_THREADS))
        return _LIMITER.get()
