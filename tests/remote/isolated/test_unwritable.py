"""What no message can hold costs an isolated plugin as much as a local one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.conversations import conversation, request
from support.hosts import Install, configured, started

from standards_mcp.loading.records import Status

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

DECLARES = r"""
    from standards_mcp import Plugin, Prompt, Resource, Tool, hookimpl

    HALF = "half \ud83d"

    def fine() -> str:
        return "fine"

    class {type}Plugin(Plugin):
        @hookimpl
        def register_{kind}(self):
            return [{item}]
"""
ITEMS = [
    ("tools", 'Tool(name="odd", description="Odd.", function=fine, meta={"a": object()})'),
    ("prompts", 'Prompt(name="odd", title=HALF, description="Odd.", function=fine)'),
    ("resources", 'Resource(uri=f"odd://{HALF}", name="odd", description="Odd.", function=fine)'),
]

SAYS = r"""
    from typing import Any
    from pydantic import BaseModel, Field
    from standards_mcp import (
        CallContext, Message, Plugin, Prompt, Resource, Tool, ToolError, ToolResult, hookimpl
    )

    HALF = "half \ud83d"
    BLOCK = {"type": "text", "text": HALF}
    REPORTS = [
        (1, 5, HALF), (object(), "x", 5), (float("nan"), float("inf")), (10**400,), (1, 10**400)
    ]
    RESULTS = {
        "text": HALF,
        "object": object(),
        "structured": ToolResult(text="a", structured={"a": HALF}),
        "content": ToolResult(text="a", content=(BLOCK,)),
        "meta": ToolResult(text="a", meta={"a": HALF}),
    }

    class Name(BaseModel):
        name: str

    class OddName(BaseModel):
        name: str = Field(description=HALF)

    def fail(how: str = "text") -> str:
        if how == "interrupt":
            raise KeyboardInterrupt
        raise ToolError("a", details={"b": HALF}) if how == "data" else ToolError(HALF)

    async def report(context: CallContext) -> str:
        for each in REPORTS:
            await context.report_progress(*each)
        return "fine"

    async def ask(context: CallContext, question: str) -> str:
        if question == "odd":
            await context.ask("Who?", OddName)
        await context.ask(HALF, Name)
        return "fine"

    def answer(which: str) -> Any:
        return RESULTS[which]

    def read(word: str) -> str:
        return word

    def complete(typed, others):
        return [HALF]

    class OddPlugin(Plugin):
        @hookimpl
        def register_tools(self):
            return [
                Tool(name=each.__name__, description="Odd.", function=each)
                for each in (fail, report, ask, answer)
            ]

        @hookimpl
        def register_prompts(self):
            return [Prompt(name="fail", description="Odd.", function=fail),
                    Prompt(name="read", description="Odd.", function=read,
                           complete={"word": complete})]

        @hookimpl
        def register_resources(self):
            return [Resource(uri="odd://fail", name="fail", description="Odd.",
                             function=lambda: fail())]
"""


def call(number: int, tool: str, **arguments: Any) -> bytes:
    given = {"name": tool, "arguments": arguments, "_meta": {"progressToken": number}}
    return request(number, "tools/call", **given)


LINES = [
    *(call(n, "fail", how=how) for n, how in enumerate(("text", "data", "interrupt"), 1)),
    call(4, "report"),
    *(call(n, "ask", question=which) for n, which in enumerate(("odd", "half"), 5)),
    *(
        call(n, "answer", which=which)
        for n, which in enumerate(("text", "object", "structured", "content", "meta"), 7)
    ),
    request(20, "prompts/get", name="fail", arguments={}),
    request(21, "resources/read", uri="odd://fail"),
    request(
        22,
        "completion/complete",
        ref={"type": "ref/prompt", "name": "read"},
        argument={"name": "word", "value": ""},
    ),
    request(99, "ping"),
]


async def test_an_isolated_plugin_fails_that_declares_what_cannot_be_sent(install: Install):
    names = [f"odd{number}" for number in range(len(ITEMS))]
    for name, (kind, item) in zip(names, ITEMS, strict=True):
        source = DECLARES.replace("{type}", name.capitalize())
        install(name, source.replace("{kind}", kind).replace("{item}", item))
    tables = {name: {"isolate": True} for name in names}
    async with started(configured(plugins=tables)) as host:
        for name, (kind, _) in zip(names, ITEMS, strict=True):
            record = host.manager.records[name]
            assert record.status is Status.FAILED, name
            assert f"{kind[:-1]} 'odd'" in record.reason


def said(answer: dict[str, Any]) -> str:
    """Return what a client shows of an answer, without the id of an incident."""
    text = answer["error"]["message"] if "error" in answer else str(answer["result"])
    return re.sub(r"\(id \w+\)", "(id)", text)


async def test_an_isolated_plugin_may_say_what_cannot_be_sent_as_a_local_one_may(install: Install):
    install("odd", SAYS)
    found: list[dict[int | None, str]] = []
    for isolate in (False, True):
        host = configured(plugins={"odd": {"isolate": isolate}})
        answers = await conversation(host, *LINES, elicitation={})
        found.append({number: said(answer) for number, answer in answers.items() if number})
    local, isolated = found
    assert isolated[99] == local[99] == "{}"
    assert "'values': []" in isolated.pop(22), "completions of another process fail without a word"
    assert "failed with an internal error (id)" in local.pop(22)
    assert isolated == local


async def test_arguments_that_cannot_be_sent_are_refused_and_end_no_process(install: Install):
    install("odd", SAYS)
    async with started(configured(plugins={"odd": {"isolate": True}})) as host:
        refused = await host.call_tool("answer", {"which": "half \ud83d"})
        assert refused.structured is not None
        assert refused.structured["error_type"] == "invalid_input"
        assert "cannot be sent" in refused.structured["message"]
        assert (await host.call_tool("report", {})).text == "fine"
