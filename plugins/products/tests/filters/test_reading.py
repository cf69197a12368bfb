"""What filters become, and how those that have no meaning are refused."""

from __future__ import annotations

from typing import Any

import pytest

from standards_mcp import InvalidInputError
from standards_mcp_products.filters import read_filters

KNOWN = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin"


@pytest.mark.parametrize(
    ("filters", "where"),
    [
        (None, None),
        ({}, None),
        ({"brand": "Acme"}, {"brand": "Acme"}),
        ({"price": {"$lte": 15}}, {"price": {"$lte": 15}}),
        (
            {"brand": "Acme", "price": {"$gte": 2, "$lt": 9}},
            {"$and": [{"brand": "Acme"}, {"price": {"$gte": 2}}, {"price": {"$lt": 9}}]},
        ),
        ({"$and": [{"a": 1}]}, {"a": 1}),
        ({"$or": [{"a": 1}]}, {"a": 1}),
        ({"$or": [{"a": 1, "b": 2}], "c": 3}, {"$and": [{"a": 1}, {"b": 2}, {"c": 3}]}),
        (
            {
                "a": 1,
                "$and": [{"b": 2}, {"$and": [{"c": 3}, {"d": 4}]}],
                "$or": [{"e": 5}, {"f": 6}],
            },
            {"$and": [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}, {"$or": [{"e": 5}, {"f": 6}]}]},
        ),
        (
            {"$or": [{"a": 1, "b": {"$in": ["x"]}}, {"c": True}]},
            {"$or": [{"$and": [{"a": 1}, {"b": {"$in": ["x"]}}]}, {"c": True}]},
        ),
        ({"a": 10**30}, {"a": 1e30}),
        ({"a": {"$lte": 2.5}}, {"a": {"$lte": 2.5}}),
        ({"a": 2.5}, {"$and": [{"a": 2.5}, {"a": {"$nin": [2]}}]}),
        ({"a": {"$lt": 2.5}}, {"$or": [{"a": {"$lt": 2.5}}, {"a": {"$in": [2]}}]}),
        ({"a": {"$in": [2, 2.5, 3.0]}}, {"a": {"$in": [2.0, 2.5, 3.0]}}),
    ],
)
def test_conditions_of_one_object_are_all_meant(filters: Any, where: Any):
    assert read_filters(filters).where == where


@pytest.mark.parametrize(
    ("filters", "document", "where"),
    [
        ({"document": {"$contains": "steel"}}, {"$contains": "steel"}, None),
        (
            {"document": {"$contains": "steel", "$not_contains": "wool"}, "a": 1},
            {"$and": [{"$contains": "steel"}, {"$not_contains": "wool"}]},
            {"a": 1},
        ),
        (
            {"$and": [{"document": {"$contains": "x"}, "a": 1}, {"b": 2}]},
            {"$contains": "x"},
            {"$and": [{"a": 1}, {"b": 2}]},
        ),
    ],
)
def test_conditions_about_the_text_are_apart(filters: Any, document: Any, where: Any):
    found = read_filters(filters)
    assert (found.document, found.where) == (document, where)


def nested(depth: int) -> dict[str, Any]:
    return {"a": 1} if depth == 1 else {"$and": [nested(depth - 1)]}


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"price": {"$lower": 1}}, f"filters.price: unknown operator '$lower'; use {KNOWN}"),
        ({"price": {"$lte": "9"}}, "filters.price.$lte: a number is needed"),
        ({"price": {"$lte": True}}, "filters.price.$lte: a number is needed"),
        ({"price": {"$lte": None}}, "filters.price.$lte: a number is needed"),
        ({"price": {"$gt": float("inf")}}, "filters.price.$gt: the number must be finite"),
        ({"price": {"$eq": float("nan")}}, "filters.price.$eq: the number must be finite"),
        ({"price": 10**400}, "filters.price: the number must be finite"),
        ({"brand": {"$in": []}}, "filters.brand.$in: must not be empty"),
        ({"brand": {"$in": "x"}}, "filters.brand.$in: a list is needed"),
        (
            {"brand": {"$in": ["x"] * 101}},
            "filters.brand.$in: has 101 values; at most 100 are allowed",
        ),
        ({"brand": {"$nin": ["x", 1]}}, "filters.brand.$nin: must have values of one type"),
        ({"brand": {"$nin": [True, 1]}}, "filters.brand.$nin: must have values of one type"),
        (
            {"brand": {"$in": ["x", None]}},
            "filters.brand.$in[1]: a text, a number or a boolean is needed",
        ),
        ({"brand": None}, "filters.brand: a text, a number or a boolean is needed"),
        ({"brand": {}}, f"filters.brand: an operator is needed; use {KNOWN}"),
        ({"brand": ["x"]}, 'filters.brand: use {"$in": [...]} for a list'),
        ({"brand": "\ud800"}, "filters.brand: the text has a NUL character or half of a character"),
        (
            {"document": {"$contains": "\x00"}},
            "filters.document.$contains: the text has a NUL character",
        ),
        ({"brand": "a\x00"}, "filters.brand: the text has a NUL character"),
        ({"brand": {"$in": ["\x00"]}}, "filters.brand.$in[0]: the text has a NUL character"),
        ({"title": {"$contains": "x"}}, "filters.title: $contains is allowed for 'document' only"),
        ({"$not": []}, "filters: unknown key '$not'; use names of fields, $and or $or"),
        ({"$" * 999: 1}, f"filters: unknown key '{'$' * 64}...'; use names"),
        ({"x" * 999: {}}, f"filters.{'x' * 64}...: an operator is needed"),
        ({"x": {"y" * 999: 1}}, f"filters.x: unknown operator '{'y' * 64}...'; use $eq"),
        ({"": 1}, "filters: unknown key ''; use names of fields, $and or $or"),
        ({"#document": "x"}, "filters: unknown key '#document'; use names of fields, $and or $or"),
        ({"chroma:document": "x"}, "filters: unknown key 'chroma:document'"),
        ({"\ud800": 1}, "filters: the text has a NUL character or half of a character"),
        ({"$and": []}, "filters.$and: a list of at least one filter is needed"),
        ({"$or": {}}, "filters.$or: a list of at least one filter is needed"),
        ({"$or": [{}]}, "filters.$or[0]: an object with at least one key is needed"),
        ({"$and": [{"a": 1}, 5]}, "filters.$and[1]: an object with at least one key is needed"),
        ({"$or": [{"a": {"$x": 1}}]}, "filters.$or[0].a: unknown operator '$x'"),
        ({"document": "x"}, "filters.document: use $contains, $not_contains"),
        ({"document": {"$eq": "x"}}, "filters.document: unknown operator '$eq'"),
        ({"document": {"$contains": ""}}, "filters.document.$contains: must not be empty"),
        ({"document": {"$contains": 5}}, "filters.document.$contains: a text is needed"),
        (
            {"$or": [{"document": {"$contains": "x"}}]},
            "filters.$or[0].document: is allowed at the top level only, or in a $and there",
        ),
        (
            {"$and": [{"$and": [{"document": {"$contains": "x"}}]}]},
            "filters.$and[0].$and[0].document: is allowed at the top level only",
        ),
        (nested(9), f"filters{'.$and[0]' * 8}: filters may be nested at most 8 deep"),
        ({"$or": [{"a": 1}] * 65}, "filters.$or[64].a: there may be at most 64 conditions"),
    ],
)
def test_anything_else_is_refused_with_its_place(filters: Any, message: str):
    with pytest.raises(InvalidInputError) as caught:
        read_filters(filters)
    assert str(caught.value).startswith(message)


def test_what_is_just_within_the_limits_is_taken():
    assert read_filters(nested(8)).where == {"a": 1}
    assert len((read_filters({"$or": [{"a": 1}] * 64}).where or {})["$or"]) == 64
    assert read_filters({"a": {"$in": list(range(100))}}).where == {"a": {"$in": list(range(100))}}
