from __future__ import annotations

import dataclasses
import functools
import json
import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import anyio
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

from standards_mcp import Filter, InvalidInputError, Tool, ToolResult
from standards_mcp.contributions.arguments import Arguments, read_arguments, read_signature
from standards_mcp.contributions.results import error_result, read_result
from standards_mcp.contributions.schemas import SchemaError, portable_input_schema, signature_of

Json = dict[str, Any]


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Point(BaseModel):
    x: int
    label: str | None = None


def _read(function: Callable[..., Any], *filters: Filter, **fields: Any) -> Arguments:
    return read_arguments(Tool(name="t", function=function, **fields), filters)


def _validated(arguments: Arguments, given_arguments: Json) -> Json:
    return anyio.run(arguments.validate, given_arguments)


def _refusal(arguments: Arguments, given_arguments: Json) -> str:
    with pytest.raises(InvalidInputError) as caught:
        _validated(arguments, given_arguments)
    return str(caught.value)


def of_all_kinds(
    text: Annotated[str, Field(description="Some text", min_length=1)],
    count: Annotated[int, Field(ge=1, le=50)] = 5,
    names: list[str] | None = None,
    level: Level | None = None,
    point: Point | None = None,
    *,
    exact: bool = False,
    share: float = 0.5,
    kind: Literal["a", "b"] = "a",
) -> str:
    return repr((text, count, names, level, point, exact, share, kind))


def test_a_signature_makes_the_schema():
    assert _read(of_all_kinds).schema == {
        "type": "object",
        "required": ["text"],
        "additionalProperties": False,
        "properties": {
            "text": {"type": "string", "minLength": 1, "description": "Some text"},
            "count": {"type": "integer", "default": 5, "minimum": 1, "maximum": 50},
            "names": {"type": "array", "items": {"type": "string"}},
            "level": {"type": "string", "enum": ["low", "high"]},
            "point": {
                "type": "object",
                "required": ["x"],
                "properties": {"x": {"type": "integer"}, "label": {"type": "string"}},
            },
            "exact": {"type": "boolean", "default": False},
            "share": {"type": "number", "default": 0.5},
            "kind": {"type": "string", "default": "a", "enum": ["a", "b"]},
        },
    }


DEFAULTS: Json = {
    "text": "x",
    "count": 5,
    "names": None,
    "level": None,
    "point": None,
    "exact": False,
    "share": 0.5,
    "kind": "a",
}


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ({}, {}),
        ({"count": "7"}, {"count": 7}),
        ({"point": {"x": "1"}}, {"point": Point(x=1)}),
        ({"count": None, "names": None, "level": None, "point": None, "kind": None}, {}),
        ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),
        ({"names": "null"}, {}),
        ({"level": "high"}, {"level": Level.HIGH}),
        ({"point": '{"x": 1}'}, {"point": Point(x=1)}),
        ({"exact": "true", "share": "0.25"}, {"exact": True, "share": 0.25}),
        ({"text": '["stays", "text"]'}, {"text": '["stays", "text"]'}),
    ],
)
def test_arguments_arrive_as_the_function_wants_them(arguments: Json, changed: Json):
    assert _validated(_read(of_all_kinds), {"text": "x"} | arguments) == DEFAULTS | changed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": None}, "text: should be a valid string"),
        ({"text": 5}, "text: should be a valid string"),
        ({"count": "7.5"}, "count: should be a valid integer"),
        ({"count": "9" * 5000}, "count: unable to parse input string as an integer"),
        ({"count": 0}, "count: should be greater than or equal to 1"),
        ({"names": "[" * 100_000}, "names: should be a valid list"),
        ({"names": ["a", 1]}, "names.1: should be a valid string"),
        ({"names": [1] * 1000}, "names.0: should be a valid string; names.1: should be a"),
        ({"level": "mid"}, "level: should be 'low' or 'high'"),
        ({"point": {}}, "point.x: this argument is required"),
        ({"cuont": 1}, "cuont: unknown argument; did you mean 'count'?"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_name_of_the_argument(arguments: Json, message: str):
    refusal = _refusal(_read(of_all_kinds), {"text": "x"} | arguments)
    assert refusal.startswith(message)
    assert "pydantic" not in refusal
    assert "\n" not in refusal
    assert len(refusal) < 250


def test_several_mistakes_are_told_together():
    refusal = _refusal(_read(of_all_kinds), {"count": 0})
    assert refusal.startswith("text: this argument is required; count: should be greater than")


@pytest.mark.parametrize(
    "name", ["schema", "json", "model_config", "self_", "filter", "_private", "args", "cls"]
)
def test_an_argument_may_have_any_name_that_python_allows(name: str):
    scope: Json = {}
    exec(f"def function({name}: int, other: str = 'x') -> str: ...", scope)  # noqa: S102
    arguments = _read(scope["function"])
    assert list(arguments.schema["properties"]) == [name, "other"]
    assert _validated(arguments, {name: "3"}) == {name: 3, "other": "x"}


def test_field_as_a_default_is_understood():
    def function(
        note: str | None,
        anything: list,
        count: int = Field(5, description="How many", ge=1),
        text: str = Field(description="What"),
        names: list[str] = Field(default_factory=list),
    ) -> str: ...

    arguments = _read(function)
    assert arguments.schema["required"] == ["note", "anything", "text"]
    assert arguments.schema["properties"]["anything"] == {"type": "array", "items": {}}
    assert arguments.schema["properties"]["count"] == {
        "type": "integer",
        "default": 5,
        "minimum": 1,
        "description": "How many",
    }
    given_arguments = {"note": None, "anything": [1, "x"], "text": "x"}
    defaults = {"count": 5, "names": []}
    assert _validated(arguments, given_arguments) == given_arguments | defaults


def test_bound_methods_partials_callables_and_wrapped_functions_are_read():
    class Host:
        def method(self, a: int) -> str: ...

        def __call__(self, a: int) -> str: ...

    def plain(b: str, a: int) -> str: ...

    @functools.wraps(Host().method)
    def wrapped(*args: Any, **kwargs: Any) -> None: ...

    for function in (Host().method, Host(), functools.partial(plain, "b"), wrapped):
        assert _validated(_read(function), {"a": "1"}) == {"a": 1}


class Tree(BaseModel):
    children: list[Tree] = []


def _taking(annotation: Any) -> Callable[..., Any]:
    def function(a) -> str: ...

    function.__annotations__["a"] = annotation
    return function


def _by_place(a: int, /) -> str: ...


def _in_german(größe: int) -> str: ...  # noqa: PLC2401


Described = Annotated[str, Field(description="A text.")]
Titled = Annotated[str, Field(description="A text.", title="Text")]


def _texts(a: str, b: Described, *, c: str = "x", d: Described = "") -> str: ...
def _optional_texts(a: str = "", b: Described = "y") -> str: ...
def _no_texts() -> str: ...
def _titled(a: Titled, b: Described = "") -> str: ...
def _nullable(a: str = None, b: str | None = None) -> str: ...  # type: ignore[assignment]  # noqa: RUF013
def _renamed(a: Annotated[str, Field(alias="aB")], b: str = Field("", alias="b-c")) -> str: ...
def _short(a: Annotated[str, Field(max_length=3)], b: Annotated[Described, 5]) -> str: ...


@pytest.mark.parametrize(
    "function", [_texts, _optional_texts, _no_texts, _titled, _nullable, _renamed, _short]
)
def test_texts_have_the_schema_that_pydantic_gives_them(function: Callable[..., Any]):
    arguments = read_signature(signature_of(function))
    by_pydantic = arguments.model().model_json_schema(by_alias=True)
    assert arguments.schema == portable_input_schema(by_pydantic)


def test_no_model_is_built_for_texts_before_they_are_checked(monkeypatch: pytest.MonkeyPatch):
    built: list[object] = []
    monkeypatch.setattr("standards_mcp.contributions.arguments._model", built.append)
    read_signature(signature_of(_texts))
    assert built == []
    with pytest.raises(SchemaError):
        read_signature(signature_of(_short))
    assert len(built) == 1


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_by_place, "'a' cannot be given by name"),
        (lambda *args: args, "'args' cannot be given by name"),
        (lambda **kwargs: kwargs, "'kwargs' cannot be given by name"),
        (lambda a: a, "'a' has no annotation"),
        (_in_german, "an argument named 'größe'"),
        (_taking(Tree), "refers to itself"),
        (_taking("Lost"), "'Lost' is not defined"),
        (_taking(tuple[int, str]), "an array without 'items' at a"),
        (_taking(object()), "cannot be described"),
        (_taking("'1 +'"), "cannot be described"),
        (_taking("date.nothing"), "signature cannot be read"),
        (5, "signature cannot be read"),
    ],
)
def test_a_signature_that_cannot_be_served_is_refused_with_the_reason(function: Any, reason: str):
    with pytest.raises(SchemaError) as caught:
        _read(function)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


# Hand-written schemas

HAND_WRITTEN: Json = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string", "maxLength": 10},
        "parts": {"type": ["array", "null"], "items": {"type": "integer"}},
        "any": True,
    },
}


def _anything(**arguments: Any) -> Any:
    return arguments


@pytest.mark.parametrize(
    ("given_arguments", "received"),
    [
        ({"code": "x", "parts": None}, {"code": "x"}),
        ({"code": "x", "parts": '["1"]'}, {"code": "x", "parts": [1]}),
        ({"code": "x", "parts": ["1", 2]}, {"code": "x", "parts": [1, 2]}),
        ({"code": "x", "any": {"y": 1}}, {"code": "x", "any": {"y": 1}}),
    ],
)
def test_a_hand_written_schema_passes_arguments_as_they_are(given_arguments: Json, received: Json):
    assert _validated(_read(_anything, input_schema=HAND_WRITTEN), given_arguments) == received


@pytest.mark.parametrize(
    ("given_arguments", "message"),
    [
        ({}, "arguments: 'code' is a required property"),
        ({"code": 5}, "code: the value is not of type 'string'"),
        ({"code": "x" * 8000}, "code: the value is too long"),
        ({"code": "x", "parts": [1, "y"]}, "parts.1: the value is not of type 'integer'"),
        ({"code": "x", "prats": []}, "prats: unknown argument; did you mean 'parts'?"),
    ],
)
def test_a_hand_written_schema_is_enforced(given_arguments: Json, message: str):
    assert _refusal(_read(_anything, input_schema=HAND_WRITTEN), given_arguments) == message


def _loop() -> Json:
    schema: Json = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, "is not a plain object"),
        ({"type": "object", "properties": []}, "is not a JSON Schema"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "is not a JSON Schema"),
        ({"type": "object", "properties": {"a": {"pattern": "["}}}, "is not a JSON Schema"),
        (_loop(), "is nested too deeply"),
        (5, "is not a JSON"),
    ],
)
def test_a_hand_written_schema_that_is_none_is_refused(schema: Any, reason: str):
    with pytest.raises(SchemaError, match=reason):
        _read(_anything, input_schema=schema)
    with pytest.raises(SchemaError, match="cannot accept filters"):
        _read(_anything, input_schema=HAND_WRITTEN, accepts_filters=True)


# Filters


def _filter(name: str, annotation: Any = str, to_expression: Any = None) -> Filter:
    return Filter(
        name=name,
        annotation=annotation,
        description=f"About {name}",
        to_expression=to_expression or (lambda value: {name: {"$eq": value}}),
    )


def filtered(text: str, filter: Mapping[str, Any] | None = None) -> str:  # noqa: A002
    return f"{text} {filter}"


STATE, LEAF = _filter("state"), _filter("leaf", bool)


def test_filters_become_optional_arguments():
    schema = _read(filtered, STATE, LEAF, accepts_filters=True).schema
    assert schema["required"] == ["text"]
    assert schema["properties"]["state"] == {"type": "string", "description": "About state"}
    assert schema["properties"]["leaf"] == {"type": "boolean", "description": "About leaf"}
    assert "filter" not in schema["properties"]


@pytest.mark.parametrize(
    ("arguments", "expression"),
    [
        ({}, None),
        ({"state": None}, None),
        ({"state": "TX"}, {"state": {"$eq": "TX"}}),
        ({"leaf": False}, {"leaf": {"$eq": False}}),
        (
            {"leaf": "true", "state": "TX"},
            {"$and": [{"state": {"$eq": "TX"}}, {"leaf": {"$eq": True}}]},
        ),
    ],
)
def test_the_function_gets_one_combined_expression(arguments: Json, expression: Any):
    read = _read(filtered, STATE, LEAF, accepts_filters=True)
    assert _validated(read, {"text": "x"} | arguments) == {"text": "x", "filter": expression}


def test_a_filter_may_have_nothing_to_say_or_refuse_its_value():
    def refuse(value: str) -> Json:
        raise InvalidInputError(f"no state {value}")

    silent = _filter("silent", bool, lambda _: None)
    read = _read(filtered, silent, STATE, accepts_filters=True)
    assert _validated(read, {"text": "x", "silent": True})["filter"] is None
    both = _validated(read, {"text": "x", "silent": True, "state": "TX"})
    assert both["filter"] == {"state": {"$eq": "TX"}}
    assert _validated(_read(filtered, accepts_filters=True), {"text": "x"})["filter"] is None
    read = _read(filtered, _filter("state", str, refuse), accepts_filters=True)
    assert _refusal(read, {"text": "x", "state": "XX"}) == "no state XX"


def test_a_tool_that_does_not_accept_filters_gets_none():
    read = _read(of_all_kinds, STATE)
    assert "state" not in read.schema["properties"]
    assert "filter" not in _validated(read, {"text": "x"})


@pytest.mark.parametrize(
    ("function", "filters", "reason"),
    [
        (of_all_kinds, (), "has no argument 'filter'"),
        (filtered, (_filter("text"),), "filter 'text' has the name of one of its arguments"),
        (filtered, (_filter("tree", Tree),), "refers to itself"),
    ],
)
def test_filters_that_do_not_fit_are_refused(function: Any, filters: Any, reason: str):
    with pytest.raises(SchemaError, match=reason):
        _read(function, *filters, accepts_filters=True)


# Arbitrary input

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["[]", "{}", "null", '{"x": 1}', "[[", "1e999", "9" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = st.text(max_size=8) | st.sampled_from([*DEFAULTS, "cuont", "state", "leaf", "parts"])


@given(st.dictionaries(NAMES, JSON, max_size=5))
@pytest.mark.parametrize(
    "read",
    [
        _read(of_all_kinds),
        _read(filtered, STATE, LEAF, accepts_filters=True),
        _read(_anything, input_schema=HAND_WRITTEN),
    ],
    ids=["signature", "filters", "hand-written"],
)
def test_what_the_published_schema_allows_is_accepted_and_all_else_at_most_refused(
    read: Arguments, arguments: Json
):
    for candidate in (arguments, {"text": "x", "code": "x"} | arguments):
        fits = jsonschema.Draft202012Validator(read.schema).is_valid(candidate)
        with nullcontext() if fits else suppress(InvalidInputError):
            _validated(read, candidate)


# Results


class Hit(TypedDict):
    score: float


@dataclasses.dataclass
class Place:
    name: str


class Aliased(BaseModel):
    id_: str = Field(serialization_alias="_id")


class Numbers(RootModel[list[int]]):
    pass


class Pair(NamedTuple):
    a: int
    b: str


def _returning(annotation: Any) -> Callable[..., Any]:
    def function() -> None: ...

    function.__annotations__["return"] = annotation
    return function


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (Point, {"x": "1"}, {"x": 1, "label": None}),
        (Annotated[Point, "documented"], Point(x=1), {"x": 1, "label": None}),
        (Aliased, Aliased(id_="1"), {"_id": "1"}),
        (Hit, {"score": 1}, {"score": 1.0}),
        (Place, Place("x"), {"name": "x"}),
        (list[Point], [Point(x=1)], {"result": [{"x": 1, "label": None}]}),
        (Numbers, Numbers([1]), {"result": [1]}),
        (Pair, Pair(1, "x"), {"result": [1, "x"]}),
        (int, 5, {"result": 5}),
        (str | None, None, {"result": None}),
        (Level, Level.LOW, {"result": "low"}),
        (date, date(2026, 1, 2), {"result": "2026-01-02"}),
        (list[float], [math.inf], {"result": [None]}),
    ],
)
def test_a_promised_result_has_a_schema_and_is_structured(
    annotation: Any, value: Any, structured: Json
):
    result = read_result(signature_of(_returning(annotation)))
    assert result.schema is not None
    assert result.schema["type"] == "object"
    assert "$defs" not in result.schema
    rendered = result.render(value)
    assert rendered.structured == structured
    assert not rendered.is_error
    if None not in structured.values() and structured.get("result") != [None]:
        jsonschema.validate(structured, result.schema)
    text = rendered.text
    assert text == structured.get("result") or json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("annotation", "value", "text", "structured"),
    [
        (str, "é😀", "é😀", None),
        (Any, [1], "[1]", None),
        (Any, None, "null", None),
        (Any, {"a": math.nan}, '{"a":null}', {"a": None}),
        (dict, {"a": Point(x=1)}, '{"a":{"x":1,"label":null}}', {"a": {"x": 1, "label": None}}),
        (Mapping[str, int], {"a": 1}, '{"a":1}', {"a": 1}),
    ],
)
def test_a_result_that_promises_nothing_is_text(
    annotation: Any, value: Any, text: str, structured: Json | None
):
    result = read_result(signature_of(_returning(annotation)))
    assert result.schema is None
    rendered = result.render(value)
    assert (rendered.text, rendered.structured) == (text, structured)


def test_a_tool_may_build_its_result_itself():
    own = ToolResult(text='x {"a":1}', structured={"a": 1}, is_error=True)
    for annotation in (ToolResult, Point, str):
        assert read_result(signature_of(_returning(annotation))).render(own) == own
    assert read_result(signature_of(lambda: own)).schema is None
    for annotation in (Tree, object(), Callable[[], int]):
        with pytest.raises(SchemaError):
            read_result(signature_of(_returning(annotation)))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Point, {"y": 1}),
        (Point, None),
        (list[int], [1, "x"]),
        (Any, object()),
        (Any, {"a": ["\ud800"]}),
        (str, b"\xff"),
        (ToolResult, ToolResult(text="x", structured=[1])),
        (ToolResult, ToolResult(text="\ud800")),
    ],
)
def test_a_result_that_cannot_be_sent_is_a_crash(annotation: Any, value: Any):
    with warnings.catch_warnings(), pytest.raises((ValueError, TypeError)):
        read_result(signature_of(_returning(annotation))).render(value)


def test_an_error_is_the_envelope_and_can_be_sent_whatever_it_says():
    result = error_result("not_found", "no \ud800 é")
    assert result.is_error
    assert result.structured == {
        "success": False,
        "results": [],
        "message": "no ? é",
        "error_type": "not_found",
    }
    assert json.loads(result.text.encode()) == result.structured


def test_an_argument_has_its_alias_for_clients_and_its_own_name_for_the_function():
    def search(
        top_k: Annotated[int, Field(alias="topK", ge=1)] = 5,
        min_score: float = Field(0.0, alias="minScore"),
    ) -> float:
        return top_k + min_score

    def twice(first: Annotated[int, Field(alias="top")], top: int) -> None: ...

    arguments = _read(search)
    assert list(arguments.schema["properties"]) == ["topK", "minScore"]
    assert _validated(arguments, {"topK": 2}) == {"top_k": 2, "min_score": 0.0}
    assert _refusal(arguments, {"topK": 0}).startswith("topK: ")
    assert _refusal(arguments, {"top_k": 2}) == "top_k: unknown argument; did you mean 'topK'?"
    with pytest.raises(SchemaError, match="two of its arguments are called 'top'"):
        _read(twice)
