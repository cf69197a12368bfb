from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.records import SMALL_CATALOG, record

from standards_mcp.filters import matches, parse_filter
from standards_mcp_catalog import CatalogUnavailableError, FilterError
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.index import engine, generation
from standards_mcp_catalog.local.index.generation import Generation
from standards_mcp_catalog.local.sqlite import create_database
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_encoders.minilm import MiniLmEncoder

VALUES = st.sampled_from(["a", "b", "1", "", 0, 1, 1.0, 2.5, -1, True, False])
FIELDS = ["tag", "tags", "level", "depth", "is_leaf", "nobody_has_it"]
CONDITIONS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"$eq": VALUES}),
    st.fixed_dictionaries({"$ne": VALUES}),
    st.fixed_dictionaries({"$in": st.lists(VALUES, min_size=1, max_size=4)}),
    st.fixed_dictionaries({"$nin": st.lists(VALUES, min_size=1, max_size=4)}),
    st.fixed_dictionaries({"$exists": st.booleans()}),
    st.dictionaries(
        st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
        st.sampled_from([-1, 0, 1, 2.5]),
        min_size=1,
        max_size=2,
    ),
)
EXPRESSIONS = st.recursive(
    st.dictionaries(st.sampled_from(FIELDS), CONDITIONS, min_size=1, max_size=3),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)}),
    ),
    max_leaves=6,
)


def varied_records() -> list[StandardRecord]:
    options: list[dict[str, Any]] = [
        {},
        {"tag": "a", "tags": ["a", "b"], "level": 1, "depth": 2},
        {"tag": "b", "tags": [], "level": 1.0, "is_leaf": False},
        {"tag": None, "tags": ["1"], "level": True},
        {"tag": 1, "tags": [1, "1", 2.5], "level": "1"},
        {"tag": False, "tags": [True, None, ""], "level": 2.5, "depth": 1},
        {"tag": {"nested": 1}, "tags": [["a"], {"b": 1}], "level": -1},
        {"tag": "", "tags": [0, False], "level": 0, "is_leaf": False, "depth": 1},
    ]
    return [record(n, f"Plain text {n}.", **fields) for n, fields in enumerate(options * 3)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    encoder = MiniLmEncoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "open_encoder", lambda _spec, _key, **_: encoder)
        local = LocalStore(tmp_path_factory.mktemp("served"))
        local.upsert(varied_records())
        yield local
        local.close()


@given(expression=EXPRESSIONS)
def test_a_filter_lets_through_exactly_what_its_definition_says(
    served: LocalStore, expression: dict[str, Any]
):
    node = parse_filter(expression)
    records = varied_records()
    expected = {each.id for each in records if matches(node, each.to_dict())}
    by_mode: list[set[str]] = []
    for mode in ("lexical", "dense"):
        hits = served.search("plain text", 100, expression, mode).hits
        by_mode.append({each.id for hit in hits for each in (hit.record, *hit.also_in)})
    assert by_mode == [expected, expected]


@given(text=st.text(st.characters(codec=None), max_size=300))
@example('text:("a" AND NOT [ plain~2^0.5 *?\\ OR')
@example("\ud800" * 7990 + " plain")
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_string_is_a_legal_query(served: LocalStore, text: str):
    for mode in ("hybrid", "lexical"):
        hits = served.search(text, 5, None, mode).hits
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert len(hits) == 5 or "plain" not in text


def test_a_filter_that_cannot_be_applied_is_refused(served: LocalStore):
    for field in ("content", "description"):
        with pytest.raises(FilterError, match=f"'{field}' is searched"):
            served.search("x", 5, {"$or": [{"depth": 1}, {field: "Count."}]})
    with pytest.raises(FilterError):
        served.search(" ", 5, {"depth": {"$like": 1}})


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    folder.mkdir()
    create_database(folder / "catalog.sqlite3")
    with closing(Database(folder / "catalog.sqlite3")) as opened:
        opened.write(SMALL_CATALOG, ())
        yield opened


def build(database: Database, index: Path, model: str | None, dimensions: int) -> Path:
    """Build an index, and make it the current one."""
    built = generation.build(database, index, model, dimensions)
    generation.make_current(built)
    return built


@pytest.fixture
def built(folder: Path, database: Database) -> Path:
    for each, (hash_, _text) in enumerate(database.texts_without_vector("m")):
        database.add_vectors("m", [(hash_, np.eye(8, dtype="<f4")[each].tobytes())])
    return build(database, folder / "index", "m", 8)


@pytest.mark.parametrize("operation", ["replace", "read_text"])
def test_a_pointer_that_another_process_holds_for_a_moment_is_waited_for(
    built: Path, database: Database, monkeypatch: pytest.MonkeyPatch, operation: str
):
    held, real = [PermissionError("in use")] * 3, getattr(Path, operation)

    def sometimes(path: Path, *arguments: Any) -> Any:
        if "current" in path.name and held:
            raise held.pop()
        return real(path, *arguments)

    monkeypatch.setattr(Path, operation, sometimes)
    newest = build(database, built.parent, None, 0)
    assert generation.current_folder(built.parent) == newest
    assert held == []


def test_the_old_index_stays_until_the_build_after_the_next(
    built: Path, database: Database, folder: Path
):
    reader = Generation(built)
    second = build(database, folder / "index", None, 0)
    assert built.exists()
    build(database, folder / "index", None, 0)
    assert not built.exists()
    assert second.exists()
    if os.name == "posix":
        query = reader.lexical.text_query("fractions")
        assert query is not None
        assert reader.lexical.search(query, None, 5).rows.size == 2
        assert reader.columns.get("subject") is not None


def test_what_interrupted_builds_left_is_removed_by_the_next(
    built: Path, database: Database, folder: Path
):
    left = folder / "index" / "g9-00000000"
    left.mkdir()
    (left / "half").write_text("half")
    (folder / "index" / "current.12345678.tmp").write_text("half")
    build(database, folder / "index", None, 0)
    assert not left.exists()
    assert sorted(path.name for path in (folder / "index").glob("*.tmp")) == []
    assert built.exists()


def flipped(intact: bytes) -> bytes:
    middle = len(intact) // 2
    return intact[:middle] + bytes([intact[middle] ^ 1]) + intact[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [None, lambda intact: intact[:-3], flipped],
    ids=["missing", "truncated", "one bit flipped"],
)
def test_damage_of_any_file_is_named_with_the_command_that_rebuilds(built: Path, damage: Any):
    names = json.loads((built / "manifest.json").read_text())["files"]
    assert {"columns.npz", "groups.npy", "vectors.npy", "text/meta.json"} <= set(names)
    for name in names:
        path = built / name
        intact = path.read_bytes()
        path.unlink()
        if damage:
            path.write_bytes(damage(intact))
        with pytest.raises(CatalogUnavailableError, match=rf"{path.name}.*data build"):
            Generation(built)
        path.write_bytes(intact)
    assert Generation(built).ids()


def test_a_build_repairs_a_damaged_or_missing_index_without_embedding_anything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    encoder = MiniLmEncoder()
    monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: encoder)
    with closing(LocalStore(folder)) as local:
        local.upsert(SMALL_CATALOG)
    vectors = generation.current_folder(folder / "index") / "vectors.npy"
    vectors.write_bytes(bytes(vectors.stat().st_size))
    told: list[int] = []
    for message in (r"vectors\.npy is damaged.*data build", r"current.*data build"):
        with pytest.raises(CatalogUnavailableError, match=message):
            local.search("fractions")
        with pytest.raises(CatalogUnavailableError, match=message.partition(" ")[0]):
            local.check()
        assert local.build(lambda _done, total: told.append(total)).details["index"] == "current"
        assert local.search("fractions").hits
        assert (told, local.check()) == ([], ())
        local.close()
        (folder / "index" / "current").unlink()
    assert "data build" in local.stats().details["index"]
    local.close()


def test_an_index_with_texts_of_another_starter_set_is_built_by_the_next_write(
    folder: Path, small_catalog: list[StandardRecord]
):
    store = LocalStore(folder, "none")
    store.upsert(small_catalog)
    path = generation.current_folder(folder / "index") / "manifest.json"
    store.upsert(())
    assert path.exists()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"edition": "earlier"}))
    store.upsert(())
    assert generation.current_folder(folder / "index") != path.parent
    assert Generation(generation.current_folder(folder / "index")).manifest.edition != "earlier"
    store.close()


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other", "version": 1}', "../../etc"])
def test_a_foreign_manifest_or_pointer_is_named(built: Path, text: str):
    manifest = built / "manifest.json"
    newer = json.dumps(json.loads(manifest.read_text()) | {"version": 99})
    for content, message in ((text, r"manifest\.json.*data build"), (newer, "99")):
        manifest.write_text(content)
        with pytest.raises(CatalogUnavailableError, match=message):
            Generation(built)
    (built.parent / "current").write_text(text)
    with pytest.raises(CatalogUnavailableError, match=r"current is not a pointer.*data build"):
        generation.current_folder(built.parent)


@pytest.mark.parametrize(
    ("phrase", "shown"),
    [
        ("a day at the zoo, in ten words or few", None),
        (
            "a day at the zoo or park, told in order, with dates",
            "a day at the zoo or park, told in order",
        ),
        ("how old is this tree? count a few rings and then read", "how old is this tree?"),
        (
            "go 3.5 miles an hour and 12.25 a day or so",
            "go 3.5 miles an hour and 12.25 a day or ...",
        ),
        (
            "zoo, park: one two six ten and again one two six",
            "zoo, park: one two six ten and again one two ...",
        ),
    ],
)
def test_a_long_phrase_is_cut_at_a_clause_or_after_ten_words(phrase: str, shown: str | None):
    assert engine.shortened(phrase) == (shown or phrase)


@pytest.mark.parametrize(
    ("label", "query", "expected"),
    [
        pytest.param("Cluster", "measure rectangles", ["part", "whole"], id="behind its standard"),
        pytest.param("Standard", "measure rectangles", ["whole", "part"], id="no group"),
        pytest.param("Cluster", "XQ.1", ["whole"], id="named by its code"),
    ],
)
def test_a_group_comes_behind_its_best_standard_if_that_is_near(
    folder: Path, label: str, query: str, expected: list[str]
):
    whole = record(1, "Measure rectangles.", _id="whole", statement_label=label, is_leaf=False)
    below = {"parent_id": "whole", "ancestor_ids": ["whole"], "statement_notation": "XQ.1.a"}
    part = record(2, "Measure rectangles by tiles.", _id="part", **below)
    with closing(LocalStore(folder, "none")) as store:
        store.upsert([whole, part, *(record(n, f"Filler {n}.") for n in range(3, 9))])
        hits = store.search(query, 2).hits
    assert [hit.record.id for hit in hits][: len(expected)] == expected
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
