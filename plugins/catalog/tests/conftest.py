from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pinecone_server import KEY, PineconeServer
from support.waiting import WAIT

from standards_mcp_catalog.records import StandardRecord

MakeRecord = Callable[..., StandardRecord]
MakeClient = Callable[..., Any]


def make_record(number: int, description: str, **fields: Any) -> StandardRecord:
    data: dict[str, Any] = {
        "_id": f"R{number:03}",
        "content": f"Depth 0: {description}",
        "standard_set_id": "set-math",
        "standard_set_title": "Mathematics of Somewhere",
        "subject": "Mathematics",
        "education_levels": ["03"],
        "jurisdiction_id": "somewhere",
        "jurisdiction_title": "Somewhere",
        "statement_notation": f"XQ.{number}",
        "description": description,
    }
    return StandardRecord.from_dict(data | fields)


@pytest.fixture(scope="session")
def record() -> MakeRecord:
    return make_record


@pytest.fixture(scope="session")
def small_catalog() -> list[StandardRecord]:
    texts = [
        ("Compare two fractions that have the same denominator.", "03", "Mathematics"),
        ("Add and subtract fractions with unlike denominators.", "05", "Mathematics"),
        ("Tell time to the nearest minute on an analog clock.", "03", "Mathematics"),
        ("Retell a folk tale and explain its central message.", "03", "Language Arts"),
        ("Write an opinion piece and support it with reasons.", "04", "Language Arts"),
        ("Describe how plants use sunlight to make their food.", "05", "Science"),
        ("Model how water moves between ocean, air and land.", "05", "Science"),
        ("Measure the area of a rectangle by counting unit squares.", "03", "Mathematics"),
    ]
    return [
        make_record(number, text, education_levels=[level], subject=subject)
        for number, (text, level, subject) in enumerate(texts)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


@pytest.fixture
def server() -> Iterator[PineconeServer]:
    """Serve an empty index."""
    from pinecone._internal.http_client import get_budget_registry

    # The SDK stops trying again after many failures on one host, whatever the test.
    get_budget_registry()._reset()
    with PineconeServer() as server:
        server.add_index()
        yield server


@pytest.fixture
def make_client(server: PineconeServer) -> MakeClient:
    """Return a function that makes a client of the server's index; it pauses for no time."""
    from standards_mcp_catalog.pinecone.client import PineconeClient, Tuning

    def make(
        key: str = KEY, deadline: float = WAIT, *, knows_host: bool = True, **tuning: Any
    ) -> PineconeClient:
        settings = {"controller_host": server.url, "write_pauses": (0.01, 0.01)} | tuning
        host = server.url if knows_host else None
        return PineconeClient(key, host=host, deadline=deadline, tuning=Tuning(**settings))

    return make
