"""Renaming and removing while others write, in a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.records import record

from standards_mcp_catalog.importing.importer import import_sources
from standards_mcp_catalog.importing.maintenance import remove_sets, rename_sets
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord


class WaitingStore(LocalStore):
    """A store that waits for another process before it writes."""

    meanwhile: Callable[[], object]

    def write(self, *arguments: Any, **options: Any) -> int:
        self.meanwhile()
        return super().write(*arguments, **options)


def of_set(number: int, text: str, letter: str = "a", title: str = "") -> StandardRecord:
    title = title or letter.upper()
    return record(number, text, standard_set_id=letter, standard_set_title=title)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[LocalStore]:
    store = LocalStore(tmp_path, "none")
    import_sources(store, [[of_set(1, "Old.")]])
    yield store
    store.close()


@pytest.fixture
def waiting(tmp_path: Path, other: LocalStore) -> Iterator[WaitingStore]:
    assert other.sets()
    store = WaitingStore(tmp_path, "none")
    yield store
    store.close()


def test_a_rename_that_waited_keeps_what_was_imported_meanwhile(waiting, other):
    newer = [of_set(1, "New."), of_set(2, "More.")]
    waiting.meanwhile = lambda: import_sources(other, [newer])
    assert rename_sets(waiting, ["a"], {"title": "Ours"}) == 2
    texts = [(each.description, each.standard_set_title) for each in other.records()]
    assert texts == [("New.", "Ours"), ("More.", "Ours")]


def test_a_removal_that_waited_takes_what_is_there_by_then(waiting, other):
    newer = [of_set(2, "More."), of_set(1, "New.", "b")]
    waiting.meanwhile = lambda: import_sources(other, [newer])
    report = remove_sets(waiting, ["a"])
    assert (report.deleted, report.left) == (1, 1)
    assert [(each.id, each.description) for each in other.records()] == [("R001", "New.")]


def test_an_import_that_waited_has_the_names_that_were_given_meanwhile(waiting, other):
    waiting.meanwhile = lambda: rename_sets(other, ["a"], {"title": "Ours"})
    import_sources(waiting, [[of_set(1, "New.")]])
    assert [each.standard_set_title for each in other.records()] == ["Ours"]


def test_names_that_two_give_at_once_are_both_remembered(waiting, other):
    place = {"jurisdiction_id": "elm", "jurisdiction_title": "Elm"}
    waiting.meanwhile = lambda: rename_sets(other, ["a"], place)
    rename_sets(waiting, ["a"], {"title": "Ours"})
    assert other.database.given_names() == {"a": {"title": "Ours", **place}}


def test_names_are_forgotten_with_the_set_whatever_removes_it(other):
    rename_sets(other, ["a"], {"title": "Ours"})
    other.delete(["R001"])
    for _ in range(2):
        import_sources(other, [[of_set(1, "Old.")]])
        assert [each.title for each in other.sets()] == ["A"]
    assert other.database.given_names() == {}
