from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standards_mcp.filters import matches, parse_filter
from standards_mcp_catalog import CatalogUnavailableError, FilterError
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.index import engine, generation
from standards_mcp_catalog.local.index.columns import select
from standards_mcp_catalog.local.index.generation import Generation, checksum
from standards_mcp_catalog.local.index.lexical import LexicalIndex, LexicalWriter
from standards_mcp_catalog.local.index.rows import heights
from standards_mcp_catalog.local.sqlite import create_database
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_encoders.minilm import MiniLmEncoder

MakeRecord = Callable[..., StandardRecord]

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


def varied_records(record: MakeRecord) -> list[StandardRecord]:
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
def served(record: MakeRecord, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    encoder = MiniLmEncoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "open_encoder", lambda _spec, _key, **_: encoder)
        local = LocalStore(tmp_path_factory.mktemp("served"))
        local.upsert(varied_records(record))
        yield local
        local.close()


@given(expression=EXPRESSIONS)
def test_a_filter_lets_through_exactly_what_its_definition_says(
    served: LocalStore, record: MakeRecord, expression: dict[str, Any]
) -> None:
    node = parse_filter(expression)
    records = varied_records(record)
    expected = {each.id for each in records if matches(node, each.to_dict())}
    by_mode: list[set[str]] = []
    for mode in ("lexical", "dense"):
        hits = served.search("plain text", 100, expression, mode).hits
        by_mode.append({each.id for hit in hits for each in (hit.record, *hit.also_in)})
    assert by_mode == [expected, expected]


@given(text=st.text(st.characters(codec=None), max_size=300))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_string_is_a_legal_query(served: LocalStore, text: str) -> None:
    for mode in ("hybrid", "lexical"):
        scores = [hit.score for hit in served.search(text, 5, None, mode).hits]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(
    "text",
    [
        "\x00" * 8000,
        "🍎" * 8000,
        "\ud800" * 8000,
        "a" * 8000,
        "fraction " * 888,
        'text:("a" AND NOT [',
        "plain~2^0.5 *?\\ OR",
        "/.*/",
        "\u202etxet nialp",
    ],
)
def test_no_character_of_a_query_has_a_meaning_of_its_own(served: LocalStore, text: str) -> None:
    assert len(served.search(f"{text[:7990]} plain", 5).hits) == 5
    assert len(served.search(text, 5).hits) <= 5


@pytest.mark.parametrize("field", ["content", "description"])
def test_a_text_that_is_searched_cannot_be_filtered(served: LocalStore, field: str) -> None:
    with pytest.raises(FilterError, match=f"'{field}' is searched"):
        served.search("x", 5, {"$or": [{"depth": 1}, {field: "Count."}]})


def test_a_wrong_filter_is_refused_even_when_nothing_is_asked(served: LocalStore) -> None:
    with pytest.raises(FilterError):
        served.search(" ", 5, {"depth": {"$like": 1}})


def test_rows_that_a_filter_excludes_are_not_scored(served: LocalStore) -> None:
    opened = served._engine._open_index()
    rows = opened.manifest.records
    selection = select({"depth": 2}, opened.columns, opened.lexical, rows)
    query = opened.lexical.text_query("plain")
    assert query is not None
    assert selection.mask is not None
    found = opened.lexical.search(query, selection.query, rows)
    assert sorted(found.rows.tolist()) == np.flatnonzero(selection.mask).tolist()


def test_every_field_of_the_index_is_known_by_name(served: LocalStore) -> None:
    names = served._engine._open_index().columns.names
    assert {"_id", "tag", "tags", "level", "depth", "subject"} <= set(names)
    assert not {"content", "description"} & set(names)


@pytest.fixture
def database(folder: Path, small_catalog: list[StandardRecord]) -> Iterator[Database]:
    folder.mkdir()
    create_database(folder / "catalog.sqlite3")
    with Database(folder / "catalog.sqlite3") as opened:
        opened.write(small_catalog, ())
        yield opened


@pytest.fixture
def built(folder: Path, database: Database) -> Path:
    for each, (hash_, _text) in enumerate(database.texts_without_vector("m")):
        database.add_vectors("m", [(hash_, np.eye(8, dtype="<f4")[each].tobytes())])
    return generation.build(database, folder / "index", "m", 8)


def test_an_index_knows_what_it_was_built_from(built: Path, database: Database) -> None:
    opened = Generation(built)
    assert (opened.manifest.model, opened.manifest.dimensions) == ("m", 8)
    assert opened.manifest.records == 8
    assert opened.manifest.revision == database.revision
    assert opened.ids() == [f"R{n:03}" for n in range(8)]
    assert opened.vectors is not None
    assert opened.vectors.exact.sum() == 8


@pytest.mark.parametrize("operation", ["replace", "read_text"])
def test_a_pointer_that_another_process_holds_for_a_moment_is_waited_for(
    built: Path, database: Database, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    held, real = [PermissionError("in use")] * 3, getattr(Path, operation)

    def sometimes(path: Path, *arguments: Any) -> Any:
        if "current" in path.name and held:
            raise held.pop()
        return real(path, *arguments)

    monkeypatch.setattr(Path, operation, sometimes)
    newest = generation.build(database, built.parent, None, 0)
    assert generation.current_folder(built.parent) == newest
    assert held == []


def test_a_pointer_that_stays_in_use_is_an_error(
    built: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(path: Path, *_: Any) -> None:
        raise PermissionError(f"{path} is in use")

    monkeypatch.setattr(Path, "replace", never)
    with pytest.raises(PermissionError, match="in use"):
        generation.build(database, built.parent, None, 0)
    monkeypatch.undo()
    assert Generation(generation.current_folder(built.parent)).folder == built


def test_an_index_of_nothing_can_be_opened(folder: Path) -> None:
    folder.mkdir()
    create_database(folder / "catalog.sqlite3")
    with Database(folder / "catalog.sqlite3") as empty:
        built = generation.build(empty, folder / "index", "m", 8)
    assert Generation(built).ids() == []


def test_the_old_index_stays_until_the_build_after_the_next(
    built: Path, database: Database, folder: Path
) -> None:
    reader = Generation(built)
    second = generation.build(database, folder / "index", None, 0)
    assert built.exists()
    generation.build(database, folder / "index", None, 0)
    assert not built.exists()
    assert second.exists()
    if os.name == "posix":
        query = reader.lexical.text_query("fractions")
        assert query is not None
        assert reader.lexical.search(query, None, 5).rows.size == 2
        assert reader.columns.get("subject") is not None


def test_what_interrupted_builds_left_is_removed_by_the_next(
    built: Path, database: Database, folder: Path
) -> None:
    left = folder / "index" / "g9-00000000"
    left.mkdir()
    (left / "half").write_text("half")
    (folder / "index" / "current.12345678.tmp").write_text("half")
    generation.build(database, folder / "index", None, 0)
    assert not left.exists()
    assert sorted(path.name for path in (folder / "index").glob("*.tmp")) == []
    assert built.exists()


@pytest.mark.parametrize("name", ["vectors.npy", "columns.npz", "groups.npy", "text/meta.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_file_is_named_with_the_command_that_rebuilds(
    built: Path, name: str, damage: str
) -> None:
    path = built / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CatalogUnavailableError, match=rf"{path.name}.*data build"):
        Generation(built)


def test_one_flipped_bit_in_any_file_is_noticed(built: Path) -> None:
    names = json.loads((built / "manifest.json").read_text())["files"]
    assert {"columns.npz", "vectors.npy", "text/meta.json"} <= set(names)
    for name in names:
        path = built / name
        intact = path.read_bytes()
        middle = len(intact) // 2
        path.write_bytes(intact[:middle] + bytes([intact[middle] ^ 1]) + intact[middle + 1 :])
        with pytest.raises(CatalogUnavailableError, match=rf"{path.name} is damaged.*data build"):
            Generation(built)
        path.write_bytes(intact)
    assert Generation(built).ids()


def test_damage_that_only_a_search_meets_is_named(tmp_path: Path) -> None:
    writer = LexicalWriter(tmp_path / "text")
    for row in range(3000):
        writer.add(row, [f"zebra {row} counts w{row % 97}"], [f"0:{row % 7}"])
    writer.finish()
    (postings,) = (tmp_path / "text").glob("*.idx")
    intact = postings.read_bytes()
    footer = 120
    noise = random.Random(1).randbytes(len(intact) - footer)  # noqa: S311
    postings.write_bytes(noise + intact[-footer:])
    with pytest.raises(CatalogUnavailableError, match=r"cannot read .*text.*data build"):
        find_zebras(LexicalIndex(tmp_path / "text"))


def find_zebras(index: LexicalIndex) -> None:
    query = index.text_query("zebra counts w5")
    assert query is not None
    index.search(query, index.tokens_query(["0:3"]), 100)


def test_a_build_repairs_a_damaged_index_without_embedding_anything(
    folder: Path, small_catalog: list[StandardRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = MiniLmEncoder()
    monkeypatch.setattr(engine, "open_encoder", lambda _spec, _key, **_: encoder)
    local = LocalStore(folder)
    local.upsert(small_catalog)
    local.close()
    vectors = generation.current_folder(folder / "index") / "vectors.npy"
    vectors.write_bytes(bytes(vectors.stat().st_size))
    with pytest.raises(CatalogUnavailableError, match=r"vectors\.npy is damaged.*data build"):
        local.search("fractions")
    with pytest.raises(CatalogUnavailableError, match=r"vectors\.npy"):
        local.check()
    told: list[int] = []
    local.build(lambda _done, total: told.append(total))
    assert told == []
    assert local.search("fractions").hits
    assert local.check() == ()
    local.close()


def test_an_array_of_another_index_is_refused(built: Path) -> None:
    path, manifest = built / "vectors.npy", built / "manifest.json"
    np.save(path, np.zeros((4, 16), dtype=np.float32))
    data = json.loads(manifest.read_text())
    data["files"][path.name] = [path.stat().st_size, checksum(path)]
    manifest.write_text(json.dumps(data))
    with pytest.raises(CatalogUnavailableError, match="belongs to another index"):
        Generation(built)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other", "version": 1}', "\x00"])
def test_a_foreign_manifest_is_named(built: Path, text: str) -> None:
    (built / "manifest.json").write_text(text)
    with pytest.raises(CatalogUnavailableError, match=r"manifest\.json.*data build"):
        Generation(built)


@pytest.mark.parametrize("version", [4, 99])
def test_a_manifest_of_another_version_is_refused(built: Path, version: int) -> None:
    path = built / "manifest.json"
    data = json.loads(path.read_text()) | {"version": version}
    del data["edition"]  # earlier versions had none
    path.write_text(json.dumps(data))
    with pytest.raises(CatalogUnavailableError, match=rf"format .*{version}.*data build"):
        Generation(built)


def test_an_index_with_texts_of_another_starter_set_is_built_by_the_next_write(
    folder: Path, small_catalog: list[StandardRecord]
) -> None:
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


@pytest.mark.parametrize("pointer", ["", "../../etc", "g1-zzzz", "\x00\x01"])
def test_a_foreign_pointer_is_named(built: Path, pointer: str) -> None:
    (built.parent / "current").write_text(pointer)
    with pytest.raises(CatalogUnavailableError, match=r"current is not a pointer.*data build"):
        generation.current_folder(built.parent)


def test_a_missing_index_is_named_and_built_again(
    folder: Path, small_catalog: list[StandardRecord]
) -> None:
    local = LocalStore(folder, "none")
    local.upsert(small_catalog)
    (folder / "index" / "current").unlink()
    with pytest.raises(CatalogUnavailableError, match=r"current.*data build"):
        local.search("fractions")
    assert "data build" in local.stats().details["index"]
    assert local.build().details["index"] == "current"
    assert local.search("fractions").hits
    local.close()


def test_heights_count_the_levels_below_and_survive_circles() -> None:
    parents = {"a": None, "b": "a", "c": "b", "d": "a", "x": "y", "y": "x", "z": "nobody"}
    found = dict(zip(parents, heights(parents), strict=True))
    assert found["a"] == 2
    assert found["b"] == 1
    assert found["c"] == found["d"] == found["z"] == 0
