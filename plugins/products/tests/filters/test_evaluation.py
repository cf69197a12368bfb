"""Filters that hypothesis makes, answered by Chroma and by a plain evaluation in Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from anyio.from_thread import start_blocking_portal
from chromadb.config import Settings as ChromaSettings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Search = Callable[..., Any]
BRANDS = ["Acme", "acme", "Böhm", "x'y", "100%", ""]
PRICES = [1.0, 2.5, 9.99, 12.0, 15.0, 1349.5]
COUNT = 60
QUERY = "a thing of steel"
_KEPT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def products() -> list[dict[str, Any]]:
    """Return rows that have each field in some products only."""
    chance = random.Random(3)  # noqa: S311
    rows = list[dict[str, Any]]()
    for number in range(COUNT):
        row: dict[str, Any] = {"Uniq Id": f"p{number:02}", "Product Name": f"Thing {number}"}
        known: dict[str, Any] = {
            "Brand Name": chance.choice(BRANDS),
            "Selling Price": chance.choice(PRICES),
            "Rating": chance.choice([0, 3.5, 4, 5]),
            "About Product": chance.choice(["of steel", "of Steel and wool", "50% off_cut \\ x"]),
            "Organic": chance.random() < 0.5,
            "Code": chance.choice([7, "7", True, -3]),
        }
        rows.append(row | {name: known[name] for name in known if chance.random() < 0.7})
    return rows


ROWS = products()


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "sku": "Uniq Id",
        "title": "Product Name",
        "brand": "Brand Name",
        "price": "Selling Price",
        "rating": "Rating",
        "organic": "Organic",
        "code": "Code",
    }
    found = {name: row[column] for name, column in names.items() if column in row}
    return {name: value for name, value in found.items() if value != ""}


def matches(row: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Evaluate filters as the documentation describes them."""
    fields = fields_of(row)
    text = f"{row['Product Name']} {row.get('About Product', '')}"
    for key, value in filters.items():
        if key == "$and":
            fits = all(matches(row, each) for each in value)
        elif key == "$or":
            fits = any(matches(row, each) for each in value)
        elif key == "document":
            fits = all((given in text) == (name == "$contains") for name, given in value.items())
        elif isinstance(value, dict):
            fits = all(compares(fields.get(key), name, given) for name, given in value.items())
        else:
            fits = same(fields.get(key), value)
        if not fits:
            return False
    return True


def same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def compares(value: Any, name: str, given: Any) -> bool:  # noqa: PLR0911
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "$eq":
            return same(value, given)
        case "$ne":
            return not same(value, given)
        case "$in":
            return any(same(value, each) for each in given)
        case "$nin":
            return not any(same(value, each) for each in given)
        case "$gt":
            return is_number and value > given
        case "$gte":
            return is_number and value >= given
        case "$lt":
            return is_number and value < given
        case _:
            return is_number and value <= given


NAMES = st.sampled_from(["brand", "price", "rating", "organic", "code", "title", "unknown"])
TEXTS = st.sampled_from([*BRANDS, "Thing 5", "7", "other"])
NUMBERS = st.sampled_from([*PRICES, 0, 3.5, 4, 5, 7, -3, 12, 1]) | st.floats(-20, 2000)
SCALARS = TEXTS | NUMBERS | st.booleans()
LISTS = st.one_of(
    *(st.lists(each, min_size=1, max_size=4) for each in (TEXTS, NUMBERS, st.booleans()))
)
OPERATORS = st.fixed_dictionaries(
    {},
    optional={
        "$eq": SCALARS,
        "$ne": SCALARS,
        "$in": LISTS,
        "$nin": LISTS,
        "$gt": NUMBERS,
        "$gte": NUMBERS,
        "$lt": NUMBERS,
        "$lte": NUMBERS,
    },
).filter(lambda found: 0 < len(found) < 4)
LEAVES = st.dictionaries(NAMES, SCALARS | OPERATORS, min_size=1, max_size=3)


def groups(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, min_size=1, max_size=3)
    group = st.fixed_dictionaries({}, optional={"$and": lists, "$or": lists}).filter(bool)
    return st.builds(lambda one, two: one | two, group, LEAVES | st.just({}))


PARTS = st.sampled_from(["steel", "Steel", "wool", "%", "_", "\\", "e", "Thing 1", "nowhere"])
DOCUMENTS = st.dictionaries(st.sampled_from(["$contains", "$not_contains"]), PARTS, min_size=1)
LEGAL = st.builds(
    lambda filters, document: filters | ({"document": document} if document else {}),
    st.recursive(LEAVES, groups, max_leaves=6),
    st.none() | DOCUMENTS,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["$and", "$or", "$eq", "$in", "$lte", "$contains", "$not", "document"])
            | st.sampled_from(["price", "brand", "", "#id", "a.b", "chroma:document", "$"])
            | st.text(max_size=6),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
HOSTILE = st.dictionaries(st.text(max_size=6) | NAMES | st.sampled_from(["$and", "$or"]), JSON)


@pytest.fixture
def opened(open_products: Any) -> Callable[..., AbstractContextManager[Search]]:
    """Return a function that gives one that calls the tool of one server."""

    @contextmanager
    def open_one(**settings: Any) -> Iterator[Search]:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(open_products(**settings)) as client,
        ):

            def call(filters: Any, count: int) -> Any:
                arguments = {"query": QUERY, "top_k": count, "filters": filters}
                return portal.call(client.call_tool, "rag_search", arguments)

            yield call

    return open_one


@pytest.fixture(scope="module")
def things(build_apart: Callable[..., Path]) -> Path:
    """Return the state folder of the rows."""
    return build_apart(*ROWS, mapping={"organic": ["Organic"], "code": ["Code"]})


@pytest.fixture
def search(things: Path, opened: Any) -> Iterator[Search]:
    with opened(state_dir=things) as call:
        yield call


def ids(answer: Any) -> list[str]:
    assert not answer.is_error, answer.structured_content
    return [each["doc_id"] for each in answer.structured_content["results"]]


def test_legal_filters_are_answered_as_a_plain_evaluation_answers_them(search: Search):
    order = ids(search(None, 100))
    assert len(order) == COUNT
    rows = {row["Uniq Id"]: row for row in ROWS}

    @_KEPT
    @given(LEGAL)
    def check(filters: dict[str, Any]) -> None:
        expected = [each for each in order if matches(rows[each], filters)]
        assert ids(search(filters, 100)) == expected, "by Chroma"
        assert ids(search(filters, 3)) == expected[:3], "among the nearest"

    check()
    for filters in (
        {"$or": [{"price": 12.0}, {"brand": "Acme"}]},
        {"document": {"$contains": "steel", "$not_contains": "9"}},
    ):
        expected = [each for each in order if matches(rows[each], filters)]
        assert len(expected) > 3
        assert ids(search(filters, 3)) == expected[:3]


def test_few_products_that_are_far_away_are_found_as_a_plain_evaluation_finds_them(
    make: Any, opened: Any, encoder: Any
):
    rows = [
        {"Uniq Id": f"near-{number:03}", "Product Name": f"a thing of steel, size {number}"}
        for number in range(220)
    ] + [
        {"Uniq Id": f"far-{number}", "Product Name": f"{name} to eat", "Brand Name": "Rare"}
        for number, name in enumerate(["pears", "bread", "olives", "cheese", "honey", "rice"])
    ]
    make(*rows, name="products.jsonl")
    names = [row["Product Name"] for row in rows]
    near = encoder.encode(names) @ encoder.encode([QUERY])[0]
    order = [rows[each] for each in np.argsort(-near)]
    first = next(place for place, row in enumerate(order) if "Brand Name" in row)
    assert first > 160, "none is among those that are looked at first"
    with opened() as search:
        for filters in (
            {"brand": "Rare"},
            {"document": {"$contains": "to eat"}, "brand": {"$ne": "Acme"}},
            {"brand": {"$in": ["Rare", "Acme"]}, "title": {"$ne": "bread to eat"}},
        ):
            expected = [row["Uniq Id"] for row in order if matches(row, filters)]
            assert len(expected) >= 5
            for count in (3, 100):
                assert ids(search(filters, count)) == expected[:count]


WHOLE_AND_NOT = [-3, -2.5, -2, -1, -0.5, 0, 0.5, 1, 2.0, 14, 15, 15.5, 16, "15", True]
FRACTIONS = st.sampled_from([-2.5, -2, -0.5, 0, 0.5, 2, 14.5, 15, 15.0, 15.5]) | st.floats(-4, 17)
ON_PRICES = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"), FRACTIONS)
    | {each: st.lists(FRACTIONS, min_size=1, max_size=4) for each in ("$in", "$nin")},
).filter(lambda found: 0 < len(found) < 3)


def test_whole_numbers_of_another_program_are_compared_with_fractions(
    opened: Any, encoder: Any, tmp_path: Path
):
    rows = {
        f"p{number}": {"Product Name": f"Thing {number}", "Code": each}
        for number, each in enumerate(WHOLE_AND_NOT)
    }
    names = [str(each["Product Name"]) for each in rows.values()]
    theirs = ChromaSettings(anonymized_telemetry=False, _env_file=None)  # type: ignore[call-arg]
    with chromadb.PersistentClient(str(tmp_path / "theirs"), settings=theirs) as client:
        client.create_collection("amazon2020", embedding_function=None).add(
            ids=list(rows),
            embeddings=encoder.encode(names),
            documents=names,
            metadatas=[{"code": each} for each in WHOLE_AND_NOT],
        )
    with opened(path=str(tmp_path / "theirs")) as search:
        order = ids(search(None, 100))
        assert len(order) == len(rows)

        @settings(_KEPT, max_examples=40)
        @given(ON_PRICES | FRACTIONS)
        def check(condition: Any) -> None:
            filters = {"code": condition}
            expected = [each for each in order if matches(rows[each], filters)]
            assert ids(search(filters, 100)) == expected, "by Chroma"
            assert ids(search(filters, 1)) == expected[:1], "among the nearest"

        check()


def test_hostile_filters_are_refused_and_none_raises_through(search: Search):
    @_KEPT
    @given(HOSTILE)
    def check(filters: dict[str, Any]) -> None:
        answer = search(_sendable(filters), 3)
        if answer.is_error:
            found = answer.structured_content
            assert found["error_type"] == "invalid_input", found
            assert found["message"].startswith("filters"), found

    check()


def _sendable(value: Any) -> Any:
    """Return what a client can send as JSON; the readers' own tests have the rest."""
    if isinstance(value, float) and not math.isfinite(value):
        return 1e308
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_sendable(each) for each in value]
    if isinstance(value, dict):
        return {_sendable(key): _sendable(each) for key, each in value.items()}
    return value
