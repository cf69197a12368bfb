"""Values that a client sent as text."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, StrictBool, StrictInt

from standards_mcp import Tool
from standards_mcp.contributions.arguments import fitted, read_arguments
from standards_mcp.errors import InvalidInputError

Json = dict[str, Any]

NUMBER: Json = {"type": "number"}
INTEGER: Json = {"type": "integer"}
TEXT: Json = {"type": "string"}
AREA: Json = {
    "oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "size": NUMBER}},
        {"type": "object", "properties": {"kind": {"const": "named"}, "size": TEXT}},
    ]
}


def fit(schema: Json, value: Any) -> Any:
    of_all = {"type": "object", "properties": {"value": schema}, "additionalProperties": False}
    return fitted({"value": value}, of_all)["value"]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INTEGER, "-3", -3),
        (NUMBER, "0.5", 0.5),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "3", 3),
        ({"oneOf": [{"type": "array", "items": INTEGER}, INTEGER]}, ["3"], [3]),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": "array", "prefixItems": [TEXT, INTEGER], "items": NUMBER}, ["1", "2", "3.5"],
         ["1", 2, 3.5]),
        ({"type": "object", "additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
        (AREA, {"kind": "named", "size": "2"}, {"kind": "named", "size": "2"}),
        ({"allOf": [INTEGER, {"type": ["string", "integer"]}]}, "3", 3),
        ({"allOf": [{"properties": {"a": INTEGER}}, {"properties": {"a": {}}}]}, {"a": "3"},
         {"a": 3}),
        ({"type": ["string", "integer"]}, "3", "3"),
        ({"anyOf": [INTEGER, TEXT]}, "3", "3"),
        ({"enum": [1, "1"]}, "1", "1"),
        ({}, "3", "3"),
        (INTEGER, True, True),
        (INTEGER, "true", "true"),
        ({"type": "boolean"}, "True", True),
        (INTEGER, "null", None),
        (INTEGER, "5e1", 50),
        (INTEGER, "7.5", "7.5"),
        (NUMBER, "nan", "nan"),
    ],
)  # fmt: skip
def test_text_becomes_a_value_if_the_schema_admits_the_value_and_no_text(
    schema: Json, value: Any, expected: Any
):
    found = fit(schema, value)
    assert found == expected
    assert json.dumps(found) == json.dumps(expected)  # 1 is 1.0 and True to Python


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_no_number_loses_anything_as_text(number: float):
    assert fit(NUMBER, json.dumps(number)) == number
    assert fit({"type": "array", "items": NUMBER}, json.dumps([json.dumps(number)])) == [number]


def strict(top: Annotated[StrictInt, Field(ge=1)], kind: Literal[1, 2], exact: StrictBool) -> None:
    """Take no neighbour of a type."""


@pytest.mark.anyio
async def test_a_tool_that_is_strict_gets_numbers_and_no_switches_from_text():
    arguments = read_arguments(Tool(name="strict", function=strict))
    given_arguments = {"top": "3", "kind": "2", "exact": True}
    assert await arguments.validate(given_arguments) == {"top": 3, "kind": 2, "exact": True}
    with pytest.raises(InvalidInputError, match="exact: should be a valid boolean"):
        await arguments.validate(given_arguments | {"exact": "true"})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (
            {"additionalProperties": INTEGER, "patternProperties": {"^s": TEXT}},
            {"s": "3"},
            {"s": "3"},
        ),
        ({"anyOf": [True, INTEGER]}, "3", "3"),
        ({"anyOf": [INTEGER, {"type": "array", "items": INTEGER}]}, "[1, 2]", [1, 2]),
        ({"type": ["integer", "boolean"]}, "true", True),
    ],
)
async def test_arguments_that_fit_stay_and_others_are_read_as_any_type_that_is_admitted(
    schema: Json, sent: Any, expected: Any
):
    wanted = {"type": "object", "properties": {"value": schema}}
    tool = Tool(name="any", function=dict, input_schema=wanted)
    assert await read_arguments(tool).validate({"value": sent}) == {"value": expected}


def test_arguments_stay_as_the_client_sent_them():
    sent = {"value": ["1"]}
    fitted(sent, {"type": "object", "properties": {"value": {"type": "array", "items": INTEGER}}})
    assert sent == {"value": ["1"]}
