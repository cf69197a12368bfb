"""The embedded catalog: no key, no network, one folder.

Importing this module is cheap; NumPy, the index and the model load with the first search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp_catalog.base import ForwardingCatalog

if TYPE_CHECKING:
    from standards_mcp_catalog.results import StandardSets

    from .seeding import SeedSource
    from .store import LocalStore

MAX_THREADS: Final = 16
"""Most calls of embedded catalogs at a time in one event loop; further calls wait."""
_LIMITER: Final = RunVar[CapacityLimiter]("threads of embedded catalogs")
_T = TypeVar("_T")


class LocalCatalog(ForwardingCatalog):
    """A `Catalog` in one folder, backed by a `store.LocalStore` that the first use opens.

    Every call runs in a worker thread. A cancelled call returns at once and its thread ends later.
    """

    def __init__(
        self,
        path: Path,
        model: str = "minilm",
        *,
        key: SecretStr | None = None,
        seed: SeedSource | None = None,
    ) -> None:
        def open_store() -> LocalStore:
            from .store import LocalStore  # noqa: PLC0415  - with the first use

            return LocalStore(path, model, key=key, seed=seed)

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
    async def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return await _in_thread(lambda: getattr(self.store, method)(*args, **kwargs))

    @override
    async def sets(self) -> StandardSets:
        from standards_mcp_catalog.results import StandardSets  # noqa: PLC0415  - see `store`

        return StandardSets(sets=tuple(await self._ask("sets")))

    async def aclose(self) -> None:
        """Close the database and the index; the next call opens them again."""
        if self._store is not None:
            await _in_thread(self._store.close)


async def _in_thread(call: Callable[[], _T]) -> _T:
    # Embedded catalogs have their own limiter: other code can use up the default one of the loop.
    try:
        limiter = _LIMITER.get()
    except LookupError:
        limiter = CapacityLimiter(MAX_THREADS)
        _LIMITER.set(limiter)
    return await to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
