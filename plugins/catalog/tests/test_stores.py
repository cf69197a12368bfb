"""The embedded store, searched by words and by vectors, passes the tests of every store."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.store_contract import (  # noqa: F401  - pytest collects the classes
    ALL,
    EVERYTHING,
    RECORDS,
    TestAFilter,
    TestASearch,
    TestASelection,
    TestClosing,
    TestFetch,
    TestFind,
    TestSuggest,
    TestTheOverview,
    TestWriting,
    found,
)

from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.local.index import engine
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_encoders.encoders import open_encoder

pytestmark = pytest.mark.anyio

LOCAL = {"words": "none", "meaning": "letters"}
"""The model of each kind of embedded store."""


class Letters:
    """Encodes a text by its letters."""

    name, dimensions = "letters", 26

    def encode(self, texts: Any) -> Any:
        counts = [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts]
        array = np.array(counts, dtype=np.float32).reshape(len(texts), 26) + 0.01
        return array / np.linalg.norm(array, axis=1, keepdims=True)


def _opened(name: str, _key: object, **_: object) -> Any:
    return open_encoder(name) if name == "none" else Letters()


@pytest.fixture(autouse=True)
def _letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "open_encoder", _opened)


@pytest.fixture(params=LOCAL)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(kind: str, tmp_path: Path) -> AsyncIterator[Catalog]:
    catalog = LocalCatalog(tmp_path / "catalog", LOCAL[kind])
    yield catalog
    await catalog.aclose()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an embedded store of the records for each model, built once."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(engine, "open_encoder", _opened)
        for kind, model in LOCAL.items():
            local = LocalStore(folder / kind, model)
            assert local.upsert(RECORDS.values()) == len(RECORDS)
            local.close()
    return folder


@pytest.fixture
async def filled(kind: str, store: Catalog, built: Path, tmp_path: Path) -> Catalog:
    shutil.copytree(built / kind, tmp_path / "catalog")
    return store


async def test_the_embedded_store_is_the_same_when_another_process_opens_it(tmp_path: Path):
    local = LocalStore(tmp_path / "catalog", "none")
    local.upsert(RECORDS.values())
    local.close()
    again = LocalCatalog(tmp_path / "catalog", "none")
    assert found(await again.search(EVERYTHING, 50)) == ALL
    await again.aclose()
