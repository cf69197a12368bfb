"""The starter set's words are searched beside official ones, and one hit answers for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import record

from standards_mcp_catalog import open_local
from standards_mcp_catalog.local.index import engine
from standards_mcp_catalog.local.index.generation import Generation
from standards_mcp_catalog.local.index.manifest import current_folder
from standards_mcp_catalog.local.index.rows import open_wordings
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.starter import starter_wordings
from standards_mcp_encoders.minilm import MiniLmEncoder, shared_minilm

UNIT_FRACTIONS = "EFC133CD8D34442CA35311157F372C97"  # CCSS.Math.Content.3.NF.A.1
ENERGY_OF_SPEED = "1166F268E4B45C6CBC64058621766FA7"  # 4-PS3-1
TEACHERS_WORDS = "toy cars and marbles on ramps of several heights: faster ones have more energy"
OTHER_WORDS = "Reason that an object in quicker motion possesses greater energy."
NGSS: dict[str, Any] = {
    "subject": "Science",
    "jurisdiction_id": "71E5AA409D894EB0B43A8CD82F727BFE",
    "jurisdiction_title": "NGSS",
    "standard_set_id": "ngss-4",
    "statement_notation": "4-PS3-1",
    "education_levels": ["04"],
}


@pytest.fixture(scope="module", autouse=True)
def encoder() -> MiniLmEncoder:
    """Keep the model that catalogs share open from one test to the next."""
    return shared_minilm()


@pytest.fixture
def starter(own_catalog: Path) -> Iterator[LocalStore]:
    store = open_local(own_catalog).store
    yield store
    store.close()


@pytest.fixture
def empty(folder: Path) -> Iterator[LocalStore]:
    store = LocalStore(folder)
    yield store
    store.close()


def starter_text(id_: str) -> str:
    return next(each.text for each in starter_wordings() if each.id == id_)


def ids(store: LocalStore, text: str, top: int = 5, **options: Any) -> list[str]:
    found = store.search(text, top, **options).hits
    return [each.id for hit in found for each in (hit.record, *hit.also_in)]


def vectors(folder: Path) -> dict[str, list[float]]:
    index = Generation(current_folder(folder / "index"))
    assert index.vectors is not None
    return dict(zip(index.ids(), index.vectors.exact.tolist(), strict=False))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path_factory.mktemp("served"))) as store:
        official = record(1, "Grasp the quantity 1/b.", _id=UNIT_FRACTIONS)
        store.upsert(
            [official, record(2, OTHER_WORDS, **NGSS), record(3, "Count to 10, in steps.")]
        )
        yield store


WORDS = [*TEACHERS_WORDS.split(), *OTHER_WORDS.split(), "4-PS3-1", "1/b", "(10)", "the", "\ud800"]


@given(words=st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=9)), max_size=30))
def test_why_has_words_of_the_query_or_of_one_phrase(served: LocalStore, words: list[str]):
    query = " ".join(words)
    phrases = [phrase for each in open_wordings(None).phrases for phrase in each]
    result = served.search(query, 3)
    searched = (result.read_as or query).replace("\ud800", "?")
    for hit in result.hits:
        assert len(hit.why.split()) <= 11
        in_query = all(word in searched for word in hit.why.split(", "))
        beginning = hit.why.removesuffix(" ...")
        assert in_query or any(phrase.startswith(beginning) for phrase in phrases)


class TestAnOfficialText:
    @pytest.mark.slow
    def test_is_found_by_the_words_of_the_starter_set_and_shown(self, starter: LocalStore):
        official = record(1, "Grasp the quantity 1/b.", _id=UNIT_FRACTIONS)
        starter.upsert([official, *(record(n, f"Filler {n}.") for n in range(2, 9))])
        text = "a whole cut into equal parts: the numerator counts the parts taken"
        for mode in ("hybrid", "lexical", "dense"):
            found = {hit.record.id: hit.record for hit in starter.search(text, 5, None, mode).hits}
            assert found[UNIT_FRACTIONS].description == "Grasp the quantity 1/b."

    def test_is_found_by_a_phrase_that_none_of_its_texts_has(self, empty: LocalStore):
        official = record(1, "Grasp the quantity 1/b.", _id=UNIT_FRACTIONS)
        empty.upsert([official, *(record(n, f"Filler {n}.") for n in range(2, 9))])
        assert "bar" not in starter_text(UNIT_FRACTIONS).split()
        for mode in ("hybrid", "lexical", "dense"):
            text = "what part of the bar is colored"
            assert ids(empty, text, 1, mode=mode) == [UNIT_FRACTIONS]
            [hit] = empty.search(text, 1, None, mode).hits
            assert hit.record.description == "Grasp the quantity 1/b."

    def test_shows_the_phrase_that_found_it(self, empty: LocalStore):
        official = record(1, "Grasp the quantity 1/b.", _id=UNIT_FRACTIONS)
        empty.upsert([official, *(record(n, f"Filler {n}.") for n in range(2, 9))])
        (wording,) = (each for each in starter_wordings() if each.id == UNIT_FRACTIONS)
        for phrase in wording.phrases:
            [hit] = empty.search(phrase, 1).hits
            assert hit.why == engine.shortened(phrase)
        [hit] = empty.search("grasping a quantity", 1, None, "lexical").hits
        assert hit.why == "grasping, quantity"

    @pytest.mark.slow
    def test_of_the_same_framework_takes_the_place_of_the_starter_record_with_its_code(
        self, starter: LocalStore
    ):
        assert ids(starter, TEACHERS_WORDS, 1) == [ENERGY_OF_SPEED]
        starter.upsert([record(1, OTHER_WORDS, **NGSS)])
        for query in (TEACHERS_WORDS, OTHER_WORDS, "4-PS3-1"):
            found = ids(starter, query, 20)
            assert found[0] == "R001"
            assert ENERGY_OF_SPEED not in found
        assert [each.id for each in starter.find("4-PS3-1")] == ["R001"]
        assert starter.suggest("4-PS3-1x", 1)[0].id == "R001"
        assert [each.id for each in starter.find(ENERGY_OF_SPEED)] == [ENERGY_OF_SPEED]
        assert ids(starter, TEACHERS_WORDS, 1, mode="lexical") == ["R001"]

    @pytest.mark.slow
    def test_that_a_filter_excludes_or_that_is_deleted_takes_no_place(self, starter: LocalStore):
        starter.upsert([record(1, OTHER_WORDS, **NGSS)])
        for expression in ({"text_status": "paraphrase"}, {"standard_set_title": "NGSS: Grade 4"}):
            assert ids(starter, TEACHERS_WORDS, 1, filter=expression) == [ENERGY_OF_SPEED]
        both = ids(starter, TEACHERS_WORDS, 20, filter={"subject": "Science"})
        assert "R001" in both
        assert ENERGY_OF_SPEED not in both
        starter.delete(["R001"])
        assert ids(starter, TEACHERS_WORDS, 1) == [ENERGY_OF_SPEED]

    @pytest.mark.slow
    def test_of_another_framework_with_the_same_code_stands_beside_the_starter_record(
        self, starter: LocalStore
    ):
        elsewhere = {**NGSS, "jurisdiction_id": "co", "jurisdiction_title": "Colorado"}
        starter.upsert([record(1, OTHER_WORDS, **elsewhere)])
        for mode in ("hybrid", "lexical"):
            assert {"R001", ENERGY_OF_SPEED} == set(ids(starter, TEACHERS_WORDS, 2, mode=mode))
        assert {"R001", ENERGY_OF_SPEED} == {each.id for each in starter.find("4-PS3-1")}

    def test_about_something_else_is_not_linked_by_the_code_of_another_framework(
        self, empty: LocalStore
    ):
        elsewhere = {**NGSS, "jurisdiction_title": "Colorado"}
        empty.upsert([record(1, "Name countries that export bananas.", **elsewhere)])
        assert ids(empty, TEACHERS_WORDS, mode="lexical") == []

    def test_is_linked_without_a_model_too_by_its_id_and_in_its_framework(self, folder: Path):
        words = LocalStore(folder, "none")
        official = record(2, "Grasp the quantity 1/b.", _id=UNIT_FRACTIONS)
        elsewhere = {**NGSS, "jurisdiction_title": "Colorado"}
        other = record(3, "Explain what a quick object can do.", **elsewhere)
        words.upsert([record(1, OTHER_WORDS, **NGSS), official, other])
        assert ids(words, "toy cars and marbles") == ["R001"]
        assert ids(words, "sixths, cut with strips") == [UNIT_FRACTIONS]
        words.close()


class TestVectors:
    def test_are_the_means_of_both_texts_with_a_tenth_of_the_parent(
        self, empty: LocalStore, folder: Path, encoder: MiniLmEncoder
    ):
        parent = record(1, "Bananas and where they grow.")
        child = record(2, OTHER_WORDS, **NGSS, parent_id="R001")
        empty.upsert([parent, child])
        own, said, above = encoder.encode(
            [OTHER_WORDS, starter_text(ENERGY_OF_SPEED), parent.description]
        )
        found = vectors(folder)
        np.testing.assert_allclose(found["R001"], above, atol=1e-5)
        expected = 0.9 * (own + said) / 2 + 0.1 * above
        np.testing.assert_allclose(found["R002"], expected, atol=1e-3)

    def test_of_a_text_that_resembles_some_of_the_starter_set_move_towards_them(
        self, empty: LocalStore, folder: Path, encoder: MiniLmEncoder
    ):
        texts = ["Roll toy cars down ramps and compare energy.", "Fix a bicycle chain with a tool."]
        empty.upsert([record(n, text) for n, text in enumerate(texts, 1)])
        found, own = vectors(folder), encoder.encode(texts)
        [said] = encoder.encode([starter_text(ENERGY_OF_SPEED)])
        assert said @ found["R001"] > said @ own[0]
        np.testing.assert_allclose(found["R002"], own[1], atol=1e-5)

    @pytest.mark.slow
    def test_of_an_import_beside_others_are_those_of_one_build(
        self, starter: LocalStore, own_catalog: Path, folder: Path
    ):
        first = [record(n, f"Roll {n} marbles down ramps.", parent_id="R001") for n in range(9)]
        second = [record(20, OTHER_WORDS, **NGSS), record(1, "Marbles, ramps and toy cars.")]
        starter.upsert(first)
        starter.upsert([*second, record(30, "Gone again.", parent_id="R020")])
        starter.delete(["R030"])
        whole = open_local(folder).store
        whole.upsert([*first[:1], *first[2:], *second])
        one, other = vectors(own_catalog), vectors(folder)
        assert one.keys() == other.keys()
        np.testing.assert_allclose(list(one.values()), list(other.values()), atol=1e-5)
        starter.build()
        assert vectors(own_catalog) == one
        whole.close()

    def test_of_phrases_are_kept_once_for_all_records_of_a_standard(
        self, empty: LocalStore, folder: Path
    ):
        elsewhere = {**NGSS, "jurisdiction_title": "Colorado"}
        other = record(2, "Show that faster objects have more energy.", **elsewhere)
        empty.upsert([record(1, OTHER_WORDS, **NGSS), other, record(3, "Bananas.")])
        stored = Generation(current_folder(folder / "index")).vectors
        assert stored is not None
        assert stored.wordings.tolist() == [0, 0, -1]
        phrases = next(each.phrases for each in starter_wordings() if each.id == ENERGY_OF_SPEED)
        places = stored.phrases[0][: len(phrases)]
        assert places.tolist() == list(range(3, len(stored.exact)))
        expected = shared_minilm().encode(list(phrases))
        assert np.sum(stored.exact[places] * expected, axis=1).min() > 0.995

    def test_of_another_model_are_not_joined(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        class Ones:
            name, dimensions = "ones", 4

            def encode(self, texts: list[str]) -> Any:
                return np.full((len(texts), 4), 0.5, dtype=np.float32)

        monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: Ones())
        local = LocalStore(folder, "other")
        local.upsert([record(1, OTHER_WORDS, **NGSS)])
        assert vectors(folder) == {"R001": [0.5] * 4}
        assert ids(local, "marbles on ramps", mode="lexical") == ["R001"]
        local.close()


class TestWords:
    @pytest.fixture
    def words(self, folder: Path) -> Iterator[LocalStore]:
        with closing(LocalStore(folder, "none")) as store:
            yield store

    def test_that_stand_side_by_side_in_both_texts_count_more(self, words: LocalStore):
        apart = record(1, "Draw a line; write a number beside it.")
        beside = record(2, "Draw it; write beside it on a number line.")
        words.upsert([apart, beside, *(record(n, f"Filler {n}.") for n in range(3, 9))])
        assert ids(words, "the number line") == ["R002", "R001"]
        assert ids(words, "a line of number") == ["R001", "R002"]

    def test_are_read_where_a_text_has_signs(self, words: LocalStore):
        words.upsert([record(1, "Work with fractions."), record(2, "Find 25% of a whole.")])
        assert ids(words, r"eat \(\frac{1}{4}\) of it") == ["R001"]
        assert ids(words, "percents") == ["R002"]
