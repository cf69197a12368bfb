from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.records import eight_records, make_record

from standards_mcp_catalog.records import StandardRecord

MakeRecord = Callable[..., StandardRecord]


@pytest.fixture(scope="session")
def record() -> MakeRecord:
    return make_record


@pytest.fixture(scope="session")
def small_catalog() -> list[StandardRecord]:
    return eight_records()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "catalog"
