"""A store of standards in memory, for tests of what writes into one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

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

    def filling_without_index(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check_changeable(self) -> None:
        """Do nothing: these records are never a copy."""

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

    def crosswalks(self, ids: Iterable[str] | None = None) -> list[tuple[Crosswalk, int]]:
        del ids
        return []

    def write(
        self,
        records: Iterable[StandardRecord],
        deleted: Iterable[str] = (),
        progress: Progress | None = None,
        crosswalks: Iterable[tuple[Crosswalk, Iterable[Link]]] = (),
        names: GivenNames | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        links = [link for _, each, *_ in crosswalks for link in each]
        assert links == [], "relations are tested with the real store"
        after = dict(self.contents)
        written = []
        for record in records:
            # As JSON and back, as it would be on disk.
            after[record.id] = StandardRecord.from_dict(json.loads(json.dumps(record.to_dict())))
            written.append(record.id)
        if dry_run:
            return 0
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
