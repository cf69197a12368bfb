"""Structured results that an author declares beside a text of the tool's own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import date
from typing import Any

import pytest
from mcp import Client
from pydantic import BaseModel
from typing_extensions import TypedDict

from standards_mcp import Plugin, PluginError, Tool, ToolResult, hookimpl, tool
from standards_mcp.host import Host
from standards_mcp.server.server import build_server

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]
OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


class Document(BaseModel):
    title: str
    pages: int | None = None


class Documents(BaseModel):
    documents: list[Document]


class Loan(TypedDict):
    until: date
    titles: list[str]
    fee: float | None


def list_odd() -> ToolResult:
    return ToolResult(text="odd")


SCHEMA = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}


class LibraryPlugin(Plugin):
    @tool(output_schema=Documents, read_only=True)
    def list_documents(self, kind: str = "good") -> ToolResult:
        """List the documents as Markdown, with the same facts as a structure."""
        kinds: dict[str, dict[str, Any] | None] = {
            "good": {"documents": [{"title": "Emma", "pages": 300}]},
            "bad": {"documents": [{"pages": "many"}]},
            "none": None,
        }
        failed = kind == "failed"
        structured = {"error_type": "odd"} if failed else kinds[kind]
        return ToolResult(text="- **Emma**", structured=structured, is_error=failed)

    @tool(output_schema=SCHEMA, read_only=True)
    def count(self) -> dict[str, int]:
        """Count the documents."""
        return {"total": 1}


async def test_clients_get_the_schema_the_text_and_the_structure(
    make_host: MakeHost, open_client: OpenClient
):
    async with open_client(make_host({"library": LibraryPlugin})) as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        schema = tools["list_documents"].output_schema
        assert schema is not None
        assert schema["properties"]["documents"]["items"]["required"] == ["title"]
        assert tools["count"].output_schema == SCHEMA
        result = await client.call_tool("list_documents", {})
        assert [block.text for block in result.content] == ["- **Emma**"]
        assert result.structured_content == {"documents": [{"title": "Emma", "pages": 300}]}
        assert (await client.call_tool("count", {})).structured_content == {"total": 1}


@pytest.mark.parametrize(
    ("kind", "why"), [("bad", "does not fit"), ("none", "the result has none")]
)
async def test_a_structure_that_does_not_fit_is_not_sent(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture, kind: str, why: str
):
    result = await make_host({"library": LibraryPlugin}).call_tool("list_documents", {"kind": kind})
    assert result.structured["error_type"] == "internal_error"
    assert why in caplog.text


@pytest.mark.parametrize("schema", [Loan, {"type": "object"}, None])
async def test_a_structure_becomes_json_data_and_is_checked_as_such(
    make_host: MakeHost, schema: Any
):
    class Loans(Plugin):
        @tool(read_only=True, output_schema=schema)
        def lend(self) -> ToolResult:
            """Lend a book until a day."""
            facts = {"until": date(2026, 1, 2), "titles": ("Emma",), "fee": math.nan}
            return ToolResult(text="**lent**", structured=facts, meta={"at": date(2026, 1, 1)})

    result = await make_host({"loans": Loans}).call_tool("lend", {})
    assert result.text == "**lent**"
    assert result.structured == {"until": "2026-01-02", "titles": ["Emma"], "fee": None}
    assert result.meta == {"at": "2026-01-01"}


async def test_a_value_that_the_whole_result_lacks_is_its_mistake(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    class Loans(Plugin):
        @tool(output_schema={"type": "object", "required": ["until"]})
        def lend(self) -> ToolResult:
            """Lend."""
            return ToolResult(text="none", structured={"titles": []})

    result = await make_host({"loans": Loans}).call_tool("lend", {})
    assert result.is_error
    assert "output schema: the result: 'until' is a required property" in caplog.text


async def test_a_failure_need_not_fit(make_host: MakeHost):
    host = make_host({"library": LibraryPlugin})
    result = await host.call_tool("list_documents", {"kind": "failed"})
    assert (result.is_error, result.structured) == (True, {"error_type": "odd"})


TYPED = {"error_type": "odd", "until": "2026"}


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        (ToolResult(text="No.", structured=TYPED, is_error=True), ["No.\n" + json.dumps(TYPED)]),
        (ToolResult(text="", structured=TYPED, is_error=True), [json.dumps(TYPED)]),
        (ToolResult(text=json.dumps(TYPED, indent=1), structured=TYPED, is_error=True), None),
        (ToolResult(text="No.", structured={}, is_error=True), None),
        (ToolResult(text="No.", structured=None, is_error=True), None),
        (ToolResult(text="Yes.", structured=TYPED), None),
        (
            ToolResult(
                text="", content=[{"type": "text", "text": "No."}], structured=TYPED, is_error=True
            ),
            ["No.", json.dumps(TYPED)],
        ),
    ],
)
async def test_the_text_of_an_error_holds_all_of_its_data(
    make_host: MakeHost, result: ToolResult, texts: list[str] | None
):
    class Odd(Plugin):
        @tool
        def odd(self) -> ToolResult:
            """Fail."""
            return result

    async with Client(build_server(make_host({"odd": Odd}), "1")) as client:
        answer = await client.call_tool("odd", {})
    assert answer.structured_content == result.structured
    shown = [block.text.replace('":"', '": "').replace(',"', ', "') for block in answer.content]
    assert shown == (texts or [result.text])


@pytest.mark.parametrize(
    ("settings", "is_structured"),
    [
        ({}, True),
        ({"tools": {"structured": False}}, False),
        ({"tools": {"structured": False}, "profiles": {"p": {"structured": True}}}, True),
        ({"profiles": {"p": {"structured": False}}}, False),
    ],
)
async def test_the_admin_may_leave_out_structured_content_and_output_schemas(
    open_client: OpenClient, make_host: MakeHost, settings: dict[str, Any], is_structured: bool
):
    profile = {"profile": "p"} if "profiles" in settings else {}
    host = make_host({"library": LibraryPlugin}, **settings, **profile)
    async with open_client(host) as client:
        listed = (await client.list_tools()).tools
        assert [tool.output_schema is not None for tool in listed] == [is_structured] * len(listed)
        answer = await client.call_tool("list_documents", {})
        assert (answer.structured_content is not None) == is_structured
        assert answer.content[0].text == "- **Emma**"
        failed = await client.call_tool("list_documents", {"kind": "failed"})
        assert '"error_type":"odd"' in failed.content[0].text
        assert failed.is_error


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"type": "array"}, "its schema is not a plain object"),
        ({"type": "object", "properties": {"a": {"type": "odd"}}}, "output schema is not a JSON"),
        (int, "its schema is not a plain object"),
        (5, "cannot be described"),
    ],
)
def test_a_schema_that_clients_refuse_fails_the_plugin(
    make_host: MakeHost, declared: Any, why: str
):
    class Odd(Plugin):
        @hookimpl
        def register_tools(self) -> list[Tool]:
            return [Tool(name="odd", description="Odd.", function=list_odd, output_schema=declared)]

    with pytest.raises(PluginError, match=why):
        make_host({"odd": Odd}, strict=True)
