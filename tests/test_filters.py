from __future__ import annotations

import json
import operator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp.errors import FilterError
from standards_mcp.filters import (
    FIELD_OPERATORS,
    MAX_DEPTH,
    MAX_SIZE,
    And,
    Condition,
    Or,
    combine,
    fields,
    matches,
    parse_filter,
    values_of,
)

steady = settings(derandomize=True, deadline=None, max_examples=100)

RECORD: dict[str, Any] = {
    "subject": "Mathematics",
    "education_levels": ["03", "04"],
    "depth": 2,
    "weight": 2.0,
    "is_leaf": True,
    "child_ids": [],
    "license": None,
}


MATCHES = [
    None,
    {},
    {"subject": "Mathematics"},
    {"subject": {"$ne": "Science"}},
    {"subject": {"$in": ["Science", "Mathematics"]}},
    {"subject": {"$nin": ["Science", "Arts"]}},
    {"education_levels": "03"},
    {"education_levels": {"$in": ["01", "04"]}},
    {"education_levels": {"$nin": ["05", 3]}},
    {"depth": 2.0},
    {"weight": 2},
    {"depth": {"$gte": 2, "$lt": 3}},
    {"is_leaf": {"$ne": 1}},
    {"subject": {"$exists": True}},
    {"child_ids": {"$exists": False}},
    {"license": {"$exists": False}},
    {"subject": "Mathematics", "depth": 2},
    {"$or": [{"subject": "Science"}, {"depth": 2}]},
    {"subject": "Mathematics", "$or": [{"depth": 1}, {"$and": [{"depth": {"$gt": 1}}]}]},
]
MISSES = [
    {"subject": "mathematics"},
    {"education_levels": {"$ne": "03"}},  # some element equals
    {"education_levels": {"$nin": ["04", "12"]}},
    {"education_levels": {"$gt": 1}},  # texts have no order
    {"depth": "2"},
    {"depth": True},
    {"depth": {"$gte": 1, "$lt": 2}},
    {"is_leaf": {"$gte": 0}},
    {"is_leaf": {"$in": [1, "true"]}},
    {"unknown": {"$ne": "x"}},  # only records that have the field
    {"license": {"$ne": "x"}},
    {"child_ids": {"$ne": "x"}},
    {"subject": "Mathematics", "depth": 3},
]


@pytest.mark.parametrize("matching", [True, False])
def test_a_filter_lets_through_what_its_rules_say(matching):
    for expression in MATCHES if matching else MISSES:
        assert matches(parse_filter(expression), RECORD) == matching, expression


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ([], "an empty list is not a filter"),
        (3, "int is not a filter"),
        ({"a": None}, "'a': $eq takes a text, a number, true or false, not null."),
        ({"a": [1]}, "not this list. Use $in or $nin for a list."),
        ({"a": {}}, "'a' needs an operator: $eq, $ne"),
        ({"a": {"$contains": "x"}}, "'$contains' is not an operator; use $eq, $ne, $gt"),
        ({"a": {"gte": 1}}, "Did you mean $gte?"),
        ({"a": {"$gt": "3"}}, "'a': $gt takes a number, not '3'."),
        ({"a": {"$lte": True}}, "$lte takes a number, not true."),
        ({"a": float("inf")}, "$eq takes"),
        ({"a": {"$in": []}}, "$in takes a list, not empty"),
        ({"a": {"$exists": 1}}, "$exists takes true or false"),
        ({"a": {"$eq": {"b": 1}}}, "$eq takes a text, a number, true or false, not this object."),
        ({"$not": {"a": 1}}, "'$not' is not an operator; use $and, $or. Did you mean $or?"),
        ({"$eq": 1}, '$eq belongs under a field: {"field": {"$eq": value}}'),
        ({"$and": []}, "$and takes a list of filters that is not empty, not an empty list."),
        ({"$or": [{"a": 1}, {}]}, "an empty object is not a filter"),
        ({"": 1}, "The name of a field must be a text"),
    ],
)
def test_a_wrong_filter_is_refused_by_name(expression, words):
    with pytest.raises(FilterError) as caught:
        parse_filter(expression)
    assert words in str(caught.value)


def test_a_refusal_is_short_however_long_what_it_refuses():
    with pytest.raises(FilterError) as caught:
        parse_filter({"x" * 9000: {"$" + "y" * 9000: "z" * 9000}})
    assert len(str(caught.value)) < 300


def nested(depth: int) -> dict[str, Any]:
    expression: dict[str, Any] = {"a": 1}
    for _ in range(depth - 1):
        expression = {"$and": [expression]}
    return expression


def test_nesting_is_bounded():
    circle: dict[str, Any] = {"a": 1}
    circle["$or"] = [circle]
    assert parse_filter(nested(MAX_DEPTH)) == Condition("a", "$eq", 1)
    for expression in (nested(MAX_DEPTH + 1), nested(100_000), circle):
        with pytest.raises(FilterError, match="more than 32 levels"):
            parse_filter(expression)


def test_size_is_bounded():
    assert parse_filter({"a": {"$in": list(range(MAX_SIZE))}})
    with pytest.raises(FilterError, match="more than 10,000 values"):
        parse_filter({"a": {"$in": list(range(MAX_SIZE))}, "b": 1})
    bomb: dict[str, Any] = {"a": 1}
    for _ in range(MAX_DEPTH - 1):
        bomb = {"$or": [bomb, bomb]}
    with pytest.raises(FilterError, match="more than 10,000 values"):
        parse_filter(bomb)


def test_a_parsed_filter_is_plain_data():
    node = parse_filter({"a": {"$gt": 1, "$in": ["x", 2]}, "$or": [{"b": True}, {"c": "d"}]})
    assert node == And(
        (
            Condition("a", "$gt", 1),
            Condition("a", "$in", ("x", 2)),
            Or((Condition("b", "$eq", True), Condition("c", "$eq", "d"))),
        )
    )
    assert hash(node) is not None
    assert fields(node) == {"a", "b", "c"}
    assert fields(None) == set()


def test_expressions_combine_and_empty_ones_vanish():
    grade, subject = {"education_levels": "03"}, {"subject": "Mathematics"}
    assert combine() is None
    assert combine(None, {}) is None
    assert combine(None, grade, {}) == grade
    assert combine(grade, None, subject, {}) == {"$and": [grade, subject]}
    parsed = parse_filter(grade)
    assert parse_filter(parsed) is parsed
    assert combine(parsed, subject, None) == parse_filter({"$and": [grade, subject]})


SCALARS = (
    st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, 1.5])
    | st.sampled_from(["", "0", "1", "a"])
)
NUMBERS = st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5])
NAMES = st.sampled_from("abc")
RECORDS = st.dictionaries(NAMES, SCALARS | st.none() | st.lists(SCALARS, max_size=3))
SINGLE = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), SCALARS),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), NUMBERS),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(SCALARS, min_size=1, max_size=3)),
    st.tuples(st.just("$exists"), st.booleans()),
)
FLAT = st.dictionaries(
    NAMES, SCALARS | st.lists(SINGLE, min_size=1, max_size=2).map(dict), min_size=1, max_size=2
)
FILTERS = st.recursive(
    FLAT,
    lambda inner: st.dictionaries(
        st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3), min_size=1
    ),
    max_leaves=6,
)


def same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def naive_condition(name: str, operand: Any, elements: list[Any]) -> bool:
    if name == "$exists":
        return bool(elements) == operand
    if name in {"$ne", "$nin"}:
        unwanted = operand if name == "$nin" else [operand]
        return bool(elements) and not any(same(e, u) for e in elements for u in unwanted)
    if name in {"$eq", "$in"}:
        wanted = operand if name == "$in" else [operand]
        return any(same(e, w) for e in elements for w in wanted)
    compare = getattr(operator, {"$gt": "gt", "$gte": "ge", "$lt": "lt", "$lte": "le"}[name])
    numbers = [e for e in elements if isinstance(e, int | float) and not isinstance(e, bool)]
    return any(compare(number, operand) for number in numbers)


def naive_entry(key: str, value: Any, record: dict[str, Any]) -> bool:
    if key in {"$and", "$or"}:
        parts = [naive(inner, record) for inner in value]
        return all(parts) if key == "$and" else any(parts)
    stored = record.get(key)
    elements = stored if isinstance(stored, list) else [stored]
    elements = [element for element in elements if element is not None]
    operators = value if isinstance(value, dict) else {"$eq": value}
    return all(naive_condition(*item, elements) for item in operators.items())


def naive(expression: dict[str, Any], record: dict[str, Any]) -> bool:
    return all(naive_entry(key, value, record) for key, value in expression.items())


@steady
@given(FILTERS, RECORDS)
def test_matching_agrees_with_the_plain_reading_of_the_rules(expression, record):
    assert matches(parse_filter(expression), record) == naive(expression, record)


@pytest.mark.slow
@steady
@given(st.lists(FILTERS | st.none() | st.just({}), max_size=4), RECORDS)
def test_a_combination_matches_when_all_its_parts_do(expressions, record):
    parts = [matches(parse_filter(expression), record) for expression in expressions]
    assert matches(parse_filter(combine(*expressions)), record) == all(parts)


@steady
@given(NAMES, SINGLE, st.lists(RECORDS, max_size=5))
def test_a_store_may_judge_each_distinct_value_once(name, entry, records):
    condition = parse_filter({name: dict([entry])})
    assert isinstance(condition, Condition)
    column = {
        (type(value), value): condition.accepts(value)
        for record in records
        for value in values_of(record, name)
    }
    for record in records:
        verdicts = [column[type(value), value] for value in values_of(record, name)]
        together = all(verdicts) if condition.needs_every else any(verdicts)
        expected = together if verdicts else condition.accepts_missing
        assert matches(condition, record) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*FIELD_OPERATORS, "$and", "$or", "a", ""]) | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@steady
@given(JSON, RECORDS)
def test_arbitrary_json_is_parsed_or_refused(expression, record):
    try:
        node = parse_filter(expression)
    except FilterError:
        return
    assert matches(node, record) in {True, False}
    assert parse_filter(json.loads(json.dumps(expression))) == node
