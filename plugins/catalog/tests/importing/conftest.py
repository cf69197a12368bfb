from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.memory_store import MemoryStore

from standards_mcp_catalog.records import StandardRecord


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


MakeSet = Callable[..., dict[str, Any]]


def make_set(grade: str = "03", standards: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a standard set as the Common Standards Project writes it."""
    levels = [grade] if isinstance(grade, str) else grade
    return {
        "id": f"AA_D1_grade-{'-'.join(levels).lower()}",
        "title": f"Grade {grade} ",
        "subject": "Willow Mathematics",
        "normalizedSubject": "Math",
        "educationLevels": levels,
        "license": {"title": "CC BY 4.0", "URL": "https://terms.example", "rightsHolder": "Willow"},
        "document": {
            "id": "D1",
            "valid": "2031",
            "title": "Willow Standards",
            "sourceURL": "https://willow.example/standards",
            "publicationStatus": "Published",
        },
        "jurisdiction": {"id": "AA", "title": "Willow State "},
        "standards": standards if standards is not None else default_standards(),
    } | fields


def make_standard(id_: str, description: Any = "Say something.", **fields: Any) -> dict[str, Any]:
    return {"id": id_, "description": description, "ancestorIds": []} | fields


def default_standards() -> dict[str, dict[str, Any]]:
    return {
        "B": make_standard(
            "B", "Share beads.", ancestorIds=["A"], parentId="A", position=2000,
            statementNotation="W.1", statementLabel="Standard",
        ),
        "A": make_standard("A", "Sharing ", position=1000, parentId=None, statementNotation="W"),
        "C": make_standard(
            "C", "Share three ways.", ancestorIds=["B", "A"], parentId="B", position=3000,
            statementNotation="W.1a", altStatementNotation="W.1.a", asnIdentifier="S1000001",
        ),
    }  # fmt: skip


@pytest.fixture(scope="session")
def csp_set() -> MakeSet:
    return make_set


@pytest.fixture(scope="session")
def standard() -> MakeSet:
    return make_standard


@pytest.fixture(scope="session")
def starter() -> Callable[..., StandardRecord]:
    def make(id_: str, **fields: Any) -> StandardRecord:
        data = {
            "_id": id_,
            "content": "Depth 0: Own words.",
            "standard_set_id": "own",
            "standard_set_title": "Own",
            "subject": "Mathematics",
            "education_levels": ["03"],
            "jurisdiction_id": "AA",
            "jurisdiction_title": "Willow State",
        }
        return StandardRecord.from_dict(data | fields)

    return make


@pytest.fixture(scope="session")
def memory_store() -> type[MemoryStore]:
    return MemoryStore
