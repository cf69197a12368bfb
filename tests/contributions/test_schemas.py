from __future__ import annotations

import copy
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp.contributions.schemas import (
    MAX_SCHEMA_BYTES,
    SchemaError,
    portable_input_schema,
    portable_output_schema,
)

Json = dict[str, Any]


def _object(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


def _nested(depth: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(depth):
        schema = _object(a=schema)
    return schema


def test_an_empty_object_takes_no_arguments():
    assert portable_input_schema({"type": "object"}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("given_schema", "published"),
    [
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            {"type": "string"},
            id="optional",
        ),
        pytest.param(
            {"oneOf": [{"type": "null"}, {"type": "string"}]}, {"type": "string"}, id="one of"
        ),
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "title": "X"},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            id="union",
        ),
        pytest.param({"type": ["string", "null"]}, {"type": "string"}, id="list of types"),
        pytest.param({"type": ["string", "null", "integer"]}, {"type": ["string", "integer"]}),
        pytest.param({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        pytest.param({"type": "null"}, {"type": "null"}, id="null itself"),
        pytest.param({"anyOf": [{"type": "null"}]}, {"type": "null"}, id="nothing but null"),
        pytest.param(
            {"type": "string", "description": "d", "anyOf": [{"type": "null"}, {"maxLength": 3}]},
            {"type": "string", "description": "d", "maxLength": 3},
            id="what stands outside wins",
        ),
        pytest.param(
            {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            {"type": "array", "items": {"type": "integer"}},
            id="inside a list",
        ),
        pytest.param(
            {"type": "object", "default": {"title": "kept", "type": "array"}},
            {"type": "object", "default": {"title": "kept", "type": "array"}},
            id="a default is data",
        ),
        pytest.param({"const": {"title": "kept"}}, {"const": {"title": "kept"}}, id="a constant"),
        pytest.param(True, True, id="anything"),
    ],
)
def test_a_schema_is_put_as_every_client_takes_it(given_schema: Any, published: Any):
    result = portable_input_schema(_object(x=given_schema))
    assert result["properties"]["x"] == published


@pytest.mark.parametrize("name", ["title", "default", "anyOf", "type", "properties", "items"])
def test_an_argument_may_be_named_like_a_keyword(name: str):
    below = _object(**{name: {"type": "string", "title": "Dropped"}})
    result = portable_input_schema(_object(**{name: below}))
    assert result["properties"][name]["properties"] == {name: {"type": "string"}}


def test_references_are_inlined_and_what_stands_beside_them_wins():
    schema = _object(
        a={"$ref": "#/$defs/Level", "description": "mine"}, b={"$ref": "#/definitions/Deep"}
    )
    schema["$defs"] = {"Level": {"type": "string", "description": "theirs"}}
    schema["definitions"] = {"Deep": _object(level={"$ref": "#/$defs/Level"})}
    result = portable_input_schema(schema)
    assert result["properties"] == {
        "a": {"type": "string", "description": "mine"},
        "b": _object(level={"type": "string", "description": "theirs"}),
    }
    assert "$defs" not in result
    assert "definitions" not in result


def test_the_root_may_be_a_reference():
    schema = {"$ref": "#/$defs/Root", "$defs": {"Root": _object(a={"type": "string"})}}
    assert portable_output_schema(schema) == _object(a={"type": "string"})


TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {"Node": _object(children={"type": "array", "items": {"$ref": "#/$defs/Node"}})},
}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "is not a JSON object"),
        ([], "is not a JSON object"),
        ({}, "'type' must be 'object'"),
        ({"type": "string"}, "'type' must be 'object'"),
        ({"type": ["object"]}, "'type' must be 'object'"),
        (_object() | {"anyOf": [_object()]}, "no 'anyOf' at the root"),
        (_object() | {"oneOf": []}, "no 'oneOf' at the root"),
        (_object() | {"allOf": []}, "no 'allOf' at the root"),
        (_object() | {"enum": [{}]}, "no 'enum' at the root"),
        (TREE, "refers to itself (#/$defs/Node)"),
        (_object(a={"$ref": "#/$defs/Lost"}), "refers to #/$defs/Lost, which is not in it"),
        (_object(a={"$ref": "#"}), "refers to #"),
        (_object(a={"$ref": "https://example.org/x"}), "which is not in it"),
        (_object(a={"type": "array"}), "an array without 'items' at a"),
        (_object(a=_object(b={"type": "array"})), "an array without 'items' at a.b"),
        (_object(a={"anyOf": [{"type": "array"}]}), "an array without 'items' at a"),
        (
            _object(a={"type": "array", "prefixItems": [{"type": "string"}]}),
            "an array without 'items' at a",
        ),
        (_object(naïve={}), "an argument named 'naïve'"),
        (_object(**{"a b": {}}), "an argument named 'a b'"),
        (_object(**{"a\n": {}}), "an argument named 'a\\n'"),
        (_object(**{"": {}}), "an argument named ''"),
        (_object(**{"a" * 65: {}}), "an argument named 'aaa"),
        (_object(a=_object(**{"$b": {}})), "an argument named '$b'"),
        (_object(a={"description": "x" * MAX_SCHEMA_BYTES}), "larger than 32 KiB"),
    ],
)
def test_a_schema_that_clients_reject_is_refused_with_the_reason(schema: Any, reason: str):
    with pytest.raises(SchemaError) as caught:
        portable_input_schema(schema)
    assert reason in str(caught.value)


@pytest.mark.parametrize("depth", [20, 60])
def test_deep_schemas_are_no_trouble(depth: int):
    schema = _nested(depth)
    assert portable_output_schema(schema) == schema


def test_the_schema_that_was_given_stays_as_it_is():
    schema = _object(a={"anyOf": [{"type": "string"}, {"type": "null"}], "title": "A"}) | TREE
    schema["$ref"], schema["title"] = "#/$defs/Other", "T"
    schema["$defs"] = {"Other": {"title": "O"}}
    before = copy.deepcopy(schema)
    portable_input_schema(MappingProxyType(schema))
    assert schema == before


NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("nullable", "published"),
    [
        (
            {"anyOf": [{"type": "string"}, NULL], "title": "A", "default": None},
            {"type": ["string", "null"], "default": None},
        ),
        (
            {"oneOf": [{"type": "integer"}, {"type": "string"}, NULL]},
            {"type": ["integer", "string", "null"]},
        ),
        (
            {"anyOf": [{"type": "array", "items": {"anyOf": [{"type": "number"}, NULL]}}, NULL]},
            {"type": ["array", "null"], "items": {"type": ["number", "null"]}},
        ),
        (
            {"anyOf": [{"type": "string", "const": "a"}, NULL]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"anyOf": [{"type": "string", "enum": ["a", "b"]}, NULL]},
            {"type": ["string", "null"], "enum": ["a", "b", None]},
        ),
        (
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}, NULL]},
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}, NULL]},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]},) * 2,
    ],
)
def test_an_output_schema_keeps_null_in_the_list_of_types(nullable: Any, published: Any):
    assert portable_output_schema(_object(a=nullable)) == _object(a=published)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "anyOf", "items", "$ref", "default", "enum", "a"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_a_schema_is_either_refused_or_settled(properties: Json):
    try:
        once = portable_input_schema(_object(**properties))
    except SchemaError:
        return
    assert portable_input_schema(once) == once
