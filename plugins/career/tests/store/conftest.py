"""A database in memory, one in a file, and one of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from standards_mcp_career.database import Store


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request: pytest.FixtureRequest, open_new: Callable[[str], Store]) -> Store:
    return open_new(request.param)
