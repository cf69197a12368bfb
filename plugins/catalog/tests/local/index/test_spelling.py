"""Misspelt words of a query, corrected by the words of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord

TEXTS = [
    "Compare two fractions that have the same denominator.",
    "Place fractions on a number line.",
    "Tell time to the nearest minute on an analog clock.",
    "Explain the main idea and the point of view of a text.",
    "Describe condensation and evaporation in the water cycle.",
    "Compare two versions of a story.",
    "Write about codes of honour.",
]


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory, record: Callable[..., StandardRecord]
) -> Iterator[LocalStore]:
    store = LocalStore(tmp_path_factory.mktemp("spelling"))
    store.upsert([record(number, text) for number, text in enumerate(TEXTS)])
    yield store
    store.close()


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("franctions on a numbr lyne", "fractions on a number line"),
        ("Franctions", "fractions"),
        ("the mian idea", "the main idea"),
        ("evaperation and condensashun", "evaporation and condensation"),
        ("two vershuns of a story", "two versions of a story"),
        ("read a clok", "read a clock"),
    ],
)
def test_misspelt_words_are_read_as_similar_words_of_the_catalog(
    store: LocalStore, text: str, corrected: str
):
    result = store.search(text)
    assert result.read_as == corrected
    hits = store.search(corrected).hits
    assert [hit.record.id for hit in result.hits] == [hit.record.id for hit in hits]


@pytest.mark.parametrize(
    "text",
    [
        "fractions on a number line",
        "cloak and clocks",  # an English word that the catalog lacks
        "coders, recoding, codeless",  # derived from its words
        "numberlines",  # made of its words
        "fuls and ings",  # endings alone
        "tme in Evaperation County",  # a word that is too short, and a name
        'CLOK and lyne-up, "vershun", lyne.fraction, clok2',
        "zzzz qqqq",
        "a clok " + "and a text about time " * 20,  # long enough without that word
    ],
)
def test_correct_words_names_codes_and_quotes_stay(store: LocalStore, text: str):
    assert store.search(text).read_as == ""


def test_a_reading_that_fits_no_better_is_not_taken(store: LocalStore):
    # Nothing in the catalog is nearer to "denominater" than what the words around it find.
    assert store.search("tell time to the nearest minute, timn").read_as == ""


def test_words_of_an_import_count(store: LocalStore, record: Callable[..., StandardRecord]):
    assert store.search("stoichometry").read_as == ""
    store.upsert([record(90, "Balance by stoichiometry.")])
    assert store.search("stoichometry").read_as == "stoichiometry"


def test_without_an_encoder_only_a_text_without_known_words_is_corrected(
    tmp_path: Path, record: Callable[..., StandardRecord]
):
    store = LocalStore(tmp_path, model="none")
    store.upsert([record(number, text) for number, text in enumerate(TEXTS)])
    assert store.search("franctions").read_as == "fractions"
    assert store.search("franctions of time").read_as == ""
    store.close()
