"""Declarations, answers and errors of plugins that cannot be sent cost only their plugin."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from support.conversations import conversation, request
from support.hosts import MakeHost

from standards_mcp import (
    CallContext,
    Message,
    Plugin,
    Prompt,
    Resource,
    Tool,
    ToolError,
    ToolResult,
    hookimpl,
)
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, Status

pytestmark = pytest.mark.anyio


HALF = "half \ud83d"
INTERNAL = "failed with an internal error (id "
KINDS = {"tools": Tool, "prompts": Prompt, "resources": Resource}
CALLS = {
    "tools": ("tools/call", {"name": "odd", "arguments": {}, "_meta": {"progressToken": 7}}),
    "prompts": ("prompts/get", {"name": "odd", "arguments": {}}),
    "resources": ("resources/read", {"uri": "odd://thing"}),
}


def declaring(kind: str, function: Callable[..., Any], **fields: Any) -> type[Plugin[Any]]:
    """Return a plugin with one tool, prompt or resource, named ``odd``."""
    given = {"name": "odd", "description": "Odd.", "function": function}
    if kind == "resources":
        given["uri"] = "odd://thing"
    item = KINDS[kind](**given | fields)
    return type("Odd", (Plugin,), {f"register_{kind}": hookimpl(lambda _: [item])})


def fine() -> str:
    return "fine"


async def answered(host: Host, *lines: bytes, **capabilities: Any) -> dict[Any, dict[str, Any]]:
    """Send lines to a server, which must still answer a last one."""
    found = await conversation(host, *lines, request(99, "ping"), **capabilities)
    assert found[99]["result"] == {}
    return found


def message_of(answer: Mapping[str, Any]) -> str:
    if "error" in answer:
        return answer["error"]["message"]
    return answer["result"]["content"][0]["text"]


# What is declared


def with_half_a_default(text: str = HALF) -> str:
    return text


ODD_DECLARATIONS: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    ("tools", fine, {"title": HALF}),
    ("tools", fine, {"description": HALF}),
    ("tools", fine, {"meta": {"a": HALF}}),
    ("tools", fine, {"meta": {"a": object()}}),
    ("tools", with_half_a_default, {}),
    ("tools", fine, {"output_schema": {"type": "object", "description": HALF}}),
    ("tools", lambda _: "", {"input_schema": {"type": "object", "description": HALF}}),
    ("prompts", fine, {"title": HALF}),
    ("prompts", fine, {"description": HALF}),
    ("resources", fine, {"description": HALF}),
    ("resources", fine, {"mime_type": HALF}),
    ("resources", fine, {"mime_type": 5}),
    ("resources", fine, {"uri": f"odd://{HALF}"}),
]


@pytest.mark.parametrize(("kind", "function", "fields"), ODD_DECLARATIONS)
async def test_a_plugin_with_a_declaration_that_cannot_be_sent_fails(
    make_host: MakeHost, kind: str, function: Callable[..., Any], fields: dict[str, Any]
):
    good = declaring(kind, fine, name="good", **{"uri": "good://x"} if kind == "resources" else {})
    host = make_host({"odd": declaring(kind, function, **fields), "good": good})
    found = await answered(host, request(1, f"{kind}/list"))
    assert [each["name"] for each in found[1]["result"][kind]] == ["good"]
    assert host.manager.records["odd"].status is Status.FAILED
    assert f"{kind[:-1]} 'odd'" in host.manager.records["odd"].reason


# What is said


def fails_with(text: str, **data: Any) -> Callable[[], str]:
    def fail() -> str:
        raise ToolError(text, **data)

    return fail


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("fail", [fails_with(HALF), fails_with("a", details={"b": HALF})])
async def test_errors_with_half_a_character_are_answered(
    make_host: MakeHost, kind: str, fail: Callable[[], str]
):
    method, params = CALLS[kind]
    host = make_host({"odd": declaring(kind, fail)})
    found = await answered(host, request(1, method, **params))
    assert message_of(found[1])
    assert found[1]["result"]["isError"] if kind == "tools" else found[1]["error"]["code"]


@pytest.mark.parametrize("kind", ["prompts", "resources"])
async def test_a_completion_with_half_a_character_is_an_internal_error(
    make_host: MakeHost, kind: str, caplog: pytest.LogCaptureFixture
):
    def completed(_typed: str, _others: object) -> list[str]:
        return [HALF]

    def function(word: str) -> str:
        return word

    fields = {"uri": "odd://{word}"} if kind == "resources" else {}
    host = make_host({"odd": declaring(kind, function, complete={"word": completed}, **fields)})
    references = {"prompts": {"type": "ref/prompt", "name": "odd"}}
    references["resources"] = {"type": "ref/resource", "uri": "odd://{word}"}
    ref, argument = references[kind], {"name": "word", "value": ""}
    found = await answered(host, request(1, "completion/complete", ref=ref, argument=argument))
    assert INTERNAL in message_of(found[1])
    incident = message_of(found[1]).partition("(id ")[2][:12]
    assert [vars(r)["incident"] for r in caplog.records if r.levelno == logging.ERROR] == [incident]


class Name(BaseModel):
    name: str


class OddName(BaseModel):
    name: str = Field(description=HALF)


@pytest.mark.parametrize(("question", "model"), [(HALF, Name), ("Who?", OddName)])
async def test_a_question_that_cannot_be_sent_fails_its_call_alone(
    make_host: MakeHost, question: str, model: type[BaseModel]
):
    async def asks(context: CallContext) -> str:
        await context.ask(question, model)
        return "fine"

    method, params = CALLS["tools"]
    host = make_host({"odd": declaring("tools", asks)})
    found = await answered(host, request(1, method, **params), elicitation={})
    assert found[1]["result"]["isError"]


# What is raised


def _in_a_group(*inner: BaseException) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup("group", inner)


ENDING = [
    KeyboardInterrupt,
    GeneratorExit,
    SystemExit,
    StopAsyncIteration,
    lambda: _in_a_group(KeyboardInterrupt(), GeneratorExit()),
    lambda: _in_a_group(_in_a_group(SystemExit())),
]


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
async def test_an_exception_that_ends_programs_is_a_crash_like_any_other(
    make_host: MakeHost, kind: str, *, is_async: bool
):
    makers = iter(ENDING)

    def fail() -> str:
        make = next(makers)
        raise make()

    async def fail_later() -> str:
        return fail()

    host = make_host({"odd": declaring(kind, fail_later if is_async else fail)})
    method, params = CALLS[kind]
    found = await answered(host, *(request(n, method, **params) for n in range(1, 7)))
    for number in range(1, 7):
        assert f"odd {INTERNAL}" in message_of(found[number])


# Whatever it is

searching = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXTS = st.text(st.characters(), max_size=8)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.binary(max_size=4)
    | st.builds(object),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ERRORS = st.fixed_dictionaries(
    {}, optional={"details": ANYTHING, "status": ANYTHING, "retry_after": ANYTHING}
).map(lambda data: partial(ToolError, HALF, **data))
SAID = {
    "tools": st.one_of(
        ANYTHING,
        st.builds(ToolResult, text=ANYTHING),
        st.builds(ToolResult, structured=ANYTHING, meta=ANYTHING),
        st.builds(ToolResult, content=ANYTHING, is_error=ANYTHING),
        ERRORS,
    ),
    "prompts": st.one_of(
        ANYTHING,
        st.lists(st.builds(Message, role=ANYTHING, text=ANYTHING), max_size=2),
        ERRORS,
    ),
    "resources": st.one_of(ANYTHING, ERRORS),
}


def _host_of(plugin: type[Plugin[Any]], state: Path) -> Host:
    infos = [
        PluginInfo(name=name, load=lambda kind=kind: kind)
        for name, kind in (("odd", plugin), ("good", declaring("tools", fine, name="good")))
    ]
    host = Host(LoadedSettings(Settings(state_dir=state), None), installed=infos)
    host.load()
    return host


@pytest.mark.slow
@searching
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
async def test_nothing_that_is_said_costs_more_than_its_own_answer(
    data: st.DataObject, kind: str, tmp_path: Path
):
    said = data.draw(SAID[kind])

    def function() -> Any:
        if isinstance(said, partial):
            raise said()
        return said

    method, params = CALLS[kind]
    host = _host_of(declaring(kind, function), tmp_path)
    found = await answered(host, request(1, method, **params))
    assert "result" in found[1] or found[1]["error"]["code"] in (-32603, -32602)
    assert json.dumps(found[1])


@pytest.mark.slow
@searching
@given(question=TEXTS | ANYTHING, description=TEXTS)
async def test_no_question_costs_more_than_its_call(
    question: Any, description: str, tmp_path: Path
):
    class Answer(BaseModel):
        name: str = Field(description=description)

    async def asks(context: CallContext) -> str:
        await context.ask(question, Answer)
        return "fine"

    method, params = CALLS["tools"]
    host = _host_of(declaring("tools", asks), tmp_path)
    # Nobody answers: where the question could be sent, the call is given up at the end.
    lines = (request(1, method, **params), request(99, "ping"))
    found = await conversation(host, *lines, drain_seconds=0.05, until=99, elicitation={})
    assert found[99]["result"] == {}
