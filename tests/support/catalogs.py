"""The catalog with the starter set, which takes long to make and is the same for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from standards_mcp.catalog import open_local


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
