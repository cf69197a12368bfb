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


def test_an_empty_object_takes_no_arguments():
    assert portable_input_schema({"type": "object"}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


TEXT, NULL = {"type": "string"}, {"type": "null"}
DATA = {"type": "object", "default": {"title": "kept", "type": "array"}}


@pytest.mark.parametrize(
    ("given_schema", "published"),
    [
        pytest.param({"anyOf": [TEXT, NULL], "default": None}, TEXT, id="optional"),
        pytest.param({"oneOf": [NULL, TEXT]}, TEXT, id="one of"),
        pytest.param(
            {"anyOf": [TEXT, {"type": "integer"}, NULL], "title": "X"},
            {"anyOf": [TEXT, {"type": "integer"}]},
            id="union",
        ),
        pytest.param({"type": ["string", "null"]}, TEXT, id="list of types"),
        pytest.param({"type": ["string", "null", "integer"]}, {"type": ["string", "integer"]}),
        pytest.param(TEXT | {"enum": ["a", None]}, TEXT | {"enum": ["a"]}, id="values"),
        pytest.param(
            TEXT | {"description": "d", "anyOf": [NULL, {"maxLength": 3}]},
            TEXT | {"description": "d", "maxLength": 3},
            id="what stands outside wins",
        ),
        pytest.param(
            {"type": "array", "items": {"anyOf": [TEXT, NULL]}},
            {"type": "array", "items": TEXT},
            id="inside a list",
        ),
        pytest.param(DATA, DATA, id="a default is data"),
        pytest.param({"const": {"title": "kept"}}, {"const": {"title": "kept"}}, id="a constant"),
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


TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {"Node": _object(children={"type": "array", "items": {"$ref": "#/$defs/Node"}})},
}


NO_ITEMS = "an array without 'items' at a"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "is not a JSON object"),
        ({}, "'type' must be 'object'"),
        (_object() | {"anyOf": [_object()]}, "no 'anyOf' at the root"),
        (_object() | {"enum": [{}]}, "no 'enum' at the root"),
        (TREE, "refers to itself (#/$defs/Node)"),
        (_object(a={"$ref": "#/$defs/Lost"}), "refers to #/$defs/Lost, which is not in it"),
        (_object(a=_object(b={"type": "array"})), f"{NO_ITEMS}.b"),
        (_object(a={"anyOf": [{"type": "array"}]}), NO_ITEMS),
        (_object(a={"type": "array", "prefixItems": [{"type": "string"}]}), NO_ITEMS),
        (_object(naïve={}), "an argument named 'naïve'"),
        (_object(**{"a\n": {}}), "an argument named 'a\\n'"),
        (_object(a=_object(**{"$b": {}})), "an argument named '$b'"),
        (_object(a={"description": "x" * MAX_SCHEMA_BYTES}), "larger than 32 KiB"),
    ],
)
def test_a_schema_that_clients_reject_is_refused_with_the_reason(schema: Any, reason: str):
    with pytest.raises(SchemaError) as caught:
        portable_input_schema(schema)
    assert reason in str(caught.value)


def test_the_schema_that_was_given_stays_as_it_is():
    schema = _object(a={"anyOf": [{"type": "string"}, {"type": "null"}], "title": "A"}) | TREE
    schema["$ref"], schema["title"] = "#/$defs/Other", "T"
    schema["$defs"] = {"Other": {"title": "O"}}
    before = copy.deepcopy(schema)
    portable_input_schema(MappingProxyType(schema))
    assert schema == before


CHOICE = {"anyOf": [TEXT | {"minLength": 1}, {"type": "integer"}, NULL]}


def optional(schema: Json) -> Json:
    return {"anyOf": [schema, NULL]}


@pytest.mark.parametrize(
    ("nullable", "published"),
    [
        (
            optional(TEXT) | {"title": "A", "default": None},
            {"type": ["string", "null"], "default": None},
        ),
        ({"oneOf": [{"type": "integer"}, TEXT, NULL]}, {"type": ["integer", "string", "null"]}),
        (
            optional({"type": "array", "items": optional({"type": "number"})}),
            {"type": ["array", "null"], "items": {"type": ["number", "null"]}},
        ),
        (optional(TEXT | {"const": "a"}), {"type": ["string", "null"], "enum": ["a", None]}),
        (optional(TEXT | {"enum": ["a"]}), {"type": ["string", "null"], "enum": ["a", None]}),
        (CHOICE, CHOICE),
        ({"anyOf": [TEXT, {"type": "integer"}]},) * 2,
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
