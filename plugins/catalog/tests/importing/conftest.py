from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import pytest

from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import Crosswalk, Link
from standards_mcp_catalog.sets import GivenNames, StandardSet, memberships, with_names


class MemoryStore:
    """A store with the semantics of `LocalStore`, and a count of what it wrote."""

    def __init__(self) -> None:
        self.contents: dict[str, StandardRecord] = {}
        self.writes = 0
        self.written: list[str] = []
        self.names: GivenNames = {}

    @property
    def database(self) -> Any:
        return self  # and its own relations

    relations = database

    def given_names(self) -> GivenNames:
        here = {each.id for each in self.sets()}
        return {id_: names for id_, names in self.names.items() if id_ in here}

    def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        return [self.contents[id_] for id_ in ids if id_ in self.contents]

    def sets(self) -> list[StandardSet]:
        found: dict[str, list[StandardRecord]] = {}
        for record in self.contents.values():
            found.setdefault(record.standard_set_id, []).append(record)
        return [_set(records) for _, records in sorted(found.items())]

    def records(self, set_ids: Collection[str] | None = None) -> Iterator[StandardRecord]:
        for _, record in sorted(self.contents.items()):
            if set_ids is None or not memberships(record).keys().isdisjoint(set_ids):
                yield record

    def crosswalks(self) -> list[tuple[Crosswalk, int]]:
        return []

    def crosswalks_of(self, ids: Iterable[str]) -> list[tuple[Crosswalk, int]]:
        del ids
        return []

    def write(
        self,
        records: Iterable[StandardRecord],
        deleted: Iterable[str] = (),
        progress: Progress | None = None,
        crosswalks: Iterable[tuple[Crosswalk, Iterable[Link]]] = (),
        names: GivenNames | None = None,
    ) -> int:
        links = [link for _, each, *_ in crosswalks for link in each]
        assert links == [], "relations are tested with the real store"
        after = dict(self.contents)
        written = []
        for record in records:
            # As JSON and back, as it would be on disk.
            after[record.id] = StandardRecord.from_dict(json.loads(json.dumps(record.to_dict())))
            written.append(record.id)
        gone = [after.pop(id_) for id_ in deleted if id_ in after]
        self.contents, self.written = after, written
        self.names = with_names(self.names, names or {})
        self.writes += 1
        if progress is not None:
            progress(len(written), len(written))
        return len(written) + len(gone)


def _set(records: Sequence[StandardRecord]) -> StandardSet:
    first = records[0]
    return StandardSet(
        id=first.standard_set_id,
        title=first.standard_set_title,
        subject=first.subject,
        jurisdiction_id=first.jurisdiction_id,
        jurisdiction_title=first.jurisdiction_title,
        license=first.license,
        source_url=first.source_url,
        records=len(records),
    )


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
