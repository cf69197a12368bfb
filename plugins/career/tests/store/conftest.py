"""A database in memory and one in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from standards_mcp_career.database import Store
from standards_mcp_career.schema import open_store


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, db: Path) -> Iterator[Store]:
    opened = open_store(db if request.param == "file" else None)
    yield opened
    opened.close()
