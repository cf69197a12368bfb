from __future__ import annotations

import asyncio
import functools
import json
import logging
import signal
import statistics
import threading
import time
import uuid
from collections.abc import Callable
from datetime import date
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import SecretStr
from support.hosts import MakeHost, plugin_with
from support.waiting import let_time_pass
from typing_extensions import TypedDict

from standards_mcp import (
    ApiError,
    InvalidInputError,
    NotFoundError,
    Plugin,
    PluginSettings,
    Tool,
    ToolError,
    ToolResult,
    prompt,
    tool,
)
from standards_mcp._utils.logs import JsonFormatter

pytestmark = pytest.mark.anyio


class Panic(BaseException):
    """What native code raises; not an Exception."""


class Answer(TypedDict):
    results: list[int]


@pytest.fixture
def call(make_host: MakeHost, caplog: pytest.LogCaptureFixture) -> Callable[..., Any]:
    """Return a function that serves a function as a tool and calls it once."""
    caplog.set_level(logging.INFO, "standards_mcp")

    async def call_once(
        function: Callable[..., Any], /, *, settings: Any = None, tool: Any = None, **arguments: Any
    ) -> ToolResult:
        described = Tool(name="acme.do", function=function, description="Do.", **(tool or {}))
        host = make_host({"acme": plugin_with(described)}, **(settings or {}))
        assert not host.manager.records["acme"].reason
        return await host.call_tool("acme.do", arguments)

    return call_once


def envelope(result: ToolResult) -> tuple[str, str]:
    """Return the type and the message of an error in the envelope."""
    assert result.is_error
    assert result.structured is not None
    assert json.loads(result.text) == result.structured
    assert result.structured["success"] is False
    assert result.structured["results"] == []
    return result.structured["error_type"], result.structured["message"]


def call_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found = [vars(record) for record in caplog.records if record.getMessage() == "tool call"]
    return [json.loads(JsonFormatter().format(logging.makeLogRecord(item))) for item in found]


# Where it runs


async def test_a_sync_tool_runs_in_a_thread_and_an_async_one_on_the_loop(call: Any):
    def sync() -> int:
        return threading.get_ident()

    async def on_the_loop() -> int:
        return threading.get_ident()

    here = threading.get_ident()
    assert (await call(sync)).structured["result"] != here
    assert (await call(on_the_loop)).structured["result"] == here


# Deadlines


async def _async_sleep() -> None:
    await anyio.sleep(2)


def _sync_sleep() -> None:
    time.sleep(2)


class _ReturnsAnAwaitable:
    def __call__(self) -> Any:
        return anyio.sleep(2)


@pytest.mark.parametrize(
    ("settings", "tool"),
    [
        ({"tools": {"timeout": 0.05}}, {}),
        ({"tools": {"timeout": 30}}, {"timeout": 0.05}),
    ],
)
@pytest.mark.parametrize("function", [_async_sleep, _sync_sleep, _ReturnsAnAwaitable()])
async def test_a_call_that_overruns_its_deadline_is_a_timeout(
    call: Any, function: Any, settings: Any, tool: Any
):
    error_type, message = envelope(await call(function, settings=settings, tool=tool))
    assert error_type == "timeout"
    assert message.startswith("acme_do did not answer within 0.05 s. Try again")


async def test_a_cancelled_tool_may_clean_up(call: Any):
    cleaned = []

    async def tidy() -> None:
        try:
            let_time_pass()
            await anyio.sleep_forever()
        finally:
            cleaned.append(True)

    await call(tidy)
    assert cleaned == [True]


# Errors


class FullError(ToolError):
    """An error class with an ``__init__`` of its own."""

    error_type = "full"

    def __init__(self) -> None:
        self.shelf = 3

    def __str__(self) -> str:
        return f"Shelf {self.shelf} is full."


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        (ToolError("Do this."), "tool_error"),
        (InvalidInputError("Do this."), "invalid_input"),
        (NotFoundError("Do this."), "not_found"),
        (ApiError("they said \x1b[2J\u202e and\nno more"), "api_error"),
        (FullError(), "full"),
    ],
)
@pytest.mark.parametrize("sync", [True, False])
async def test_what_a_tool_raises_for_the_model_reaches_it(
    call: Any, error: ToolError, error_type: str, sync: bool
):
    def raise_it() -> None:
        raise error

    async def raise_it_later() -> None:
        raise error

    result = await call(raise_it if sync else raise_it_later)
    shown = str(error).replace("\x1b", "\\u001b").replace("\u202e", "\\u202e")
    assert envelope(result) == (error_type, shown), "and no character steers a terminal"


CRASHES: list[BaseException] = [
    ValueError(),
    LookupError("hush /secret/path"),
    TimeoutError("hush"),
    asyncio.CancelledError("hush"),
    SystemExit("hush"),
    StopIteration("hush"),
    MemoryError("hush"),
    RecursionError("hush"),
    Panic("hush"),
    ExceptionGroup("hush", [NotFoundError("hush")]),
]


@pytest.mark.parametrize("error", CRASHES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("sync", [True, False])
async def test_a_crash_shows_an_id_that_the_log_holds_and_nothing_else(
    call: Any, caplog: pytest.LogCaptureFixture, error: BaseException, sync: bool
):
    def crash() -> None:
        raise error

    async def crash_later() -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    result = await call(crash if sync else crash_later)
    error_type, message = envelope(result)
    assert error_type == "internal_error"
    (record,) = (item for item in caplog.records if item.getMessage() == "tool crashed")
    assert f"(id {vars(record)['incident']})" in message
    line = JsonFormatter().format(record)
    assert str(error) in line
    for hidden in ("hush", "Traceback", "test_policy", type(error).__name__, "/secret"):
        assert hidden not in result.text
    assert [item["outcome"] for item in call_lines(caplog)] == ["internal_error"]


def refuse(text: str) -> None:
    raise ValueError(f"{text} is too long")


def without_a_thread(function: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call_it(text: str) -> None:
        function(text)

    return call_it


@pytest.mark.parametrize("wrap", [lambda each: each, functools.partial, without_a_thread])
async def test_a_plain_value_error_of_the_function_is_told_to_the_client(call: Any, wrap: Any):
    result = await call(wrap(refuse), text="this")
    assert envelope(result) == ("invalid_input", "this is too long")


@pytest.mark.parametrize(
    "function",
    [
        lambda: json.loads("{hush"),  # a subclass
        lambda: str(b"\xffhush", "utf-8"),
        lambda: statistics.correlation([1.0, 2.0], [1.0, 1.0]),  # a library's own subclass
        lambda: uuid.UUID("hush"),  # raised by a library
        lambda: int("hush"),  # raised by a built-in function
    ],
)
async def test_a_value_error_of_a_library_is_not(call: Any, function: Any):
    result = await call(function)
    assert envelope(result)[0] == "internal_error"
    assert "hush" not in result.text


async def test_an_error_may_carry_data(make_host: MakeHost):
    key = "hunter-42"

    class Keyed(PluginSettings):
        key: SecretStr

    class Shop(Plugin[Keyed]):
        settings_type = Keyed

        @tool
        def buy(self) -> str:
            """Buy something."""
            details = {"code": "E7", "asked": f"?key={key}", "at": date(2026, 1, 2)}
            raise ApiError("Busy.", retry_after=12.5, status=503, details=details)

        @prompt
        def offer(self) -> str:
            """Offer something."""
            raise ApiError("Busy.", details={"key": key})

    host = make_host({"shop": Shop}, plugins={"shop": {"key": key}})
    result = await host.call_tool("buy", {})
    assert envelope(result) == ("api_error", "Busy.")
    details = {"code": "E7", "asked": "?key=***", "at": "2026-01-02"}
    data = {"retry_after": 12.5, "status": 503, "details": details}
    assert data.items() <= result.structured.items()
    with pytest.raises(ApiError) as caught:
        await host.content.get_prompt("offer", {})
    assert caught.value.data == {"details": {"key": "***"}}


@pytest.mark.parametrize(
    "data",
    [
        {"details": ["no mapping"]},
        {"details": {"odd": object()}},
        {"details": {"half": "\ud800"}},
        {"status": object()},
    ],
)
async def test_data_of_an_error_that_cannot_be_sent_is_a_crash(
    call: Any, caplog: pytest.LogCaptureFixture, data: Any
):
    def refuse() -> str:
        raise ApiError("Busy.", **data)

    assert envelope(await call(refuse))[0] == "internal_error"
    assert "of a ToolError" in caplog.text


@pytest.mark.parametrize(
    "value",
    [
        {"results": "not a list"},
        None,
        ToolResult(text=5),  # type: ignore[arg-type]
        ToolResult(text="x", structured=[1]),  # type: ignore[arg-type]
        ToolResult(text="\ud800"),
    ],
)
async def test_a_result_that_breaks_its_promise_is_a_crash(call: Any, value: Any):
    def promise() -> Answer:
        return value

    assert envelope(await call(promise))[0] == "internal_error"


async def test_ctrl_c_in_a_tool_ends_the_host(make_host: MakeHost):
    async def interrupted() -> None:
        signal.default_int_handler(signal.SIGINT, None)

    host = make_host({"acme": plugin_with(Tool(name="t", description="T.", function=interrupted))})
    calling = host.call_tool("t", {})
    with pytest.raises(KeyboardInterrupt):
        calling.send(None)  # by hand: on the loop, it would end the tests


@pytest.mark.parametrize("function", [_async_sleep, _sync_sleep])
async def test_cancellation_escapes_and_is_logged(
    call: Any, caplog: pytest.LogCaptureFixture, function: Any
):
    with anyio.move_on_after(0.02) as scope:
        await call(function)
    assert scope.cancelled_caught
    assert [line["outcome"] for line in call_lines(caplog)] == ["cancelled"]


# The log


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
async def test_a_call_is_one_line_with_its_fields_and_at_debug_its_arguments(
    call: Any, caplog: pytest.LogCaptureFixture, level: int
):
    caplog.set_level(level, "standards_mcp")

    def answer(count: int) -> Answer:
        return {"results": list(range(count))}

    await call(answer, count=3)
    (line,) = call_lines(caplog)
    assert line.pop("duration_ms") > 0
    del line["time"]
    assert line == {
        "level": "info",
        "logger": "standards_mcp.calls.call",
        "event": "tool call",
        "tool": "acme.do",
        "plugin": "acme",
        "outcome": "ok",
        "results": 3,
    } | ({"arguments": {"count": 3}} if level == logging.DEBUG else {})


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ("text", "ok"),
        ({"results": 5}, "ok"),
        (ToolResult(text="x", is_error=True), "error"),
        (ToolResult(text="x", is_error=True, structured={"results": [1]}), "error"),
        (ToolResult(text="x", is_error=True, structured={"error_type": "not_found"}), "not_found"),
    ],
)
async def test_the_line_tells_the_outcome_and_counts_results_only_where_there_are_some(
    call: Any, caplog: pytest.LogCaptureFixture, value: object, outcome: str
):
    def answer():
        return value

    await call(answer)
    (line,) = call_lines(caplog)
    assert line["outcome"] == outcome
    assert "results" not in line


async def test_no_secret_is_in_an_error_or_in_the_log(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    secret = 'q"uo\\te\n'  # noqa: S105

    class Keyed(PluginSettings):
        key: SecretStr

    class Leaky(Plugin[Keyed]):
        settings_type = Keyed

        @property
        def key(self) -> str:
            return self.settings.key.get_secret_value()

        @tool
        def raises(self) -> None:
            """Leak."""
            raise ApiError(f"refused {self.key}")

        @tool
        def returns(self) -> ToolResult:
            """Leak."""
            return ToolResult(
                text=f"refused {self.key}",
                structured={"why": [self.key]},
                is_error=True,
                notes=(f"with {self.key}",),
                meta={"key": self.key},
            )

        @tool
        def crashes(self, text: str) -> None:
            """Leak."""
            raise LookupError(f"{text} {self.key} {self.key!r} {json.dumps(self.key)}")

    caplog.set_level(logging.DEBUG)
    host = make_host({"acme": Leaky}, plugins={"acme": {"key": secret}})
    raised = await host.call_tool("raises", {})
    assert envelope(raised) == ("api_error", "refused ***")
    returned = await host.call_tool("returns", {})
    assert returned.text == 'refused ***\n{"why":["***"]}'
    assert returned.structured == {"why": ["***"]}
    assert (returned.notes, returned.meta) == (("with ***",), {"key": "***"})
    crashed = await host.call_tool("crashes", {"text": secret})
    formatter = JsonFormatter(host.secrets)
    lines = "\n".join(formatter.format(record) for record in caplog.records)
    for spelling in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], "uo\\\\te"):
        assert spelling not in lines
        assert spelling not in crashed.text
    assert lines.count("***") >= 4
