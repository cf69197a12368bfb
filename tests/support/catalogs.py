"""Catalogs that take long to fill: each is filled once, and tests get it as it is or a copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path

import pytest
from emulator.server import PineconeServer
from emulator.store import StoredIndex
from filelock import FileLock

from standards_mcp_catalog import StandardRecord, open_local
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.local.catalog import LocalCatalog

STORES = ("local", "pinecone")
FAST = 1000
"""Without the pauses that Pinecone asks of clients; a server has to be told, too."""


def planted_catalog(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a catalog with the starter set, made once for all workers.

    It is for reading: a test that writes takes a copy of it.
    """
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of the run, with one folder for each worker
    catalog = folder / "planted"
    with FileLock(folder / "planted.lock"):
        if not catalog.exists():
            store = open_local(folder / "unfinished").store
            store.search("counting")
            store.close()
            (folder / "unfinished").rename(catalog)
    return catalog


class FilledCatalogs:
    """The same records in both stores, written once; every test changes a copy of its own."""

    def __init__(self, records: Sequence[StandardRecord], folder: Path) -> None:
        self._records = records
        self._folder = folder
        self._index: StoredIndex | None = None

    @asynccontextmanager
    async def opened(self, store: str, folder: Path) -> AsyncIterator[Catalog]:
        """Open the catalog in one of `STORES`; *folder* is where the embedded one is copied to."""
        if store == "pinecone":
            async with self._pinecone() as client:
                yield client
            return
        if not self._folder.exists():
            await self._fill(LocalCatalog(self._folder, "none"))
        shutil.copytree(self._folder, folder)
        local = LocalCatalog(folder, "none")
        yield local
        await local.aclose()

    @asynccontextmanager
    async def _pinecone(self) -> AsyncIterator[Catalog]:
        with PineconeServer() as server:
            server.metadata_rate = FAST
            if self._index is None:
                server.add_index()
                await self._fill(server.client(metadata_rate=FAST))
                self._index = deepcopy(server.only_index)
            server.indexes = {self._index.name: deepcopy(self._index)}
            client = server.client(metadata_rate=FAST)
            yield client
            await client.aclose()

    async def _fill(self, catalog: Catalog) -> None:
        await catalog.upsert(self._records)
        await catalog.aclose()
