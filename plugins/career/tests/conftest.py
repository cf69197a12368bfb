"""Databases, ids and a clock for the tests: the same ids and times in each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standards_mcp_career.audit.log import AuditLog
from standards_mcp_career.domain.ids import CountingIds
from standards_mcp_career.domain.records import Interaction, Opportunity
from standards_mcp_career.store import interactions, opportunities
from standards_mcp_career.store.database import Store, open_store


def clock() -> str:
    return "2026-01-01T00:00:00Z"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "career.db"


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, db: Path) -> Iterator[Store]:
    """Open a new database in memory, and one in a file."""
    opened = open_store(db if request.param == "file" else None)
    yield opened
    opened.close()


@pytest.fixture
def ids() -> CountingIds:
    return CountingIds()


@pytest.fixture
def audit(store: Store, ids: CountingIds) -> AuditLog:
    return AuditLog(store, ids, clock)


@pytest.fixture
def add_interaction() -> Callable[..., None]:
    """Return a function that stores an interaction with its opportunity."""

    def add(store: Store, interaction_id: str, state: int = 0, index: int = 0) -> None:
        with store.writing() as connection:
            opportunity = Opportunity(
                opportunity_id="o-1", company="Reed Works", role_title="Engineer", source=""
            )
            opportunities.upsert(connection, [opportunity])
            record = Interaction(interaction_id, "o-1", state, index)
            interactions.upsert(connection, [record])

    return add
