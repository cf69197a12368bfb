from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import records

from standards_mcp_catalog.records import StandardRecord

MakeRecord = Callable[..., StandardRecord]


@pytest.fixture(scope="session")
def record() -> MakeRecord:
    return records.record


@pytest.fixture(scope="session")
def small_catalog() -> list[StandardRecord]:
    return records.SMALL_CATALOG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "catalog"
