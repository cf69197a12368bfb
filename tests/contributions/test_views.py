"""Views: pages that clients show for the answers of a tool (MCP Apps)."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError
from support.hosts import MakeHost, OpenClient

from standards_mcp import Plugin, Resource, Tool, hookimpl
from standards_mcp.contributions.resources import VIEW_TYPE

pytestmark = pytest.mark.anyio
PAGE = "<!doctype html><title>Books</title>"


def find_book() -> str:
    return "found"


def view(**fields: Any) -> Resource:
    defaults: dict[str, Any] = {
        "uri": "ui://books/found.html",
        "name": "found_view",
        "description": "Shows books.",
        "function": lambda: PAGE,
        "view_of": ("books.find",),
    }
    return Resource(**(defaults | fields))


def books_with(*resources: Resource, **fields: Any) -> type[Plugin[Any]]:
    tool = Tool(name="books.find", description="Find.", function=find_book, **fields)
    hooks = {
        "register_tools": hookimpl(lambda _: [tool]),
        "register_resources": hookimpl(lambda _: resources),
    }
    return type("BooksPlugin", (Plugin,), hooks)


async def test_a_view_is_linked_from_its_tool_and_read_with_its_meta(
    make_host: MakeHost, open_client: OpenClient
):
    ui = {"prefersBorder": False, "csp": {}}
    host = make_host({"books": books_with(view(meta={"ui": ui}))})
    async with open_client(host) as client:
        (tool,) = (await client.list_tools()).tools
        (listed,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource("ui://books/found.html")).contents
    assert tool.meta["ui"] == {"resourceUri": "ui://books/found.html"}
    assert (listed.mime_type, listed.meta["ui"]) == (VIEW_TYPE, ui)
    assert (content.mime_type, content.text, content.meta) == (VIEW_TYPE, PAGE, {"ui": ui})


@pytest.mark.parametrize(
    "settings",
    [
        {"resources": {"disable": ["found_view"]}},
        {"plugins": {"pages": {"enabled": False}}},
    ],
)
async def test_a_tool_has_no_link_to_a_view_that_is_not_served(
    make_host: MakeHost, open_client: OpenClient, settings: dict[str, Any]
):
    pages = type("P", (Plugin,), {"register_resources": hookimpl(lambda _: [view()])})
    host = make_host({"books": books_with(), "pages": pages}, **settings)
    async with open_client(host) as client:
        (tool,) = (await client.list_tools()).tools
    assert "ui" not in tool.meta


@pytest.mark.parametrize("resources", [(), (view(),)])
async def test_the_extension_is_advertised_while_a_tool_has_a_view(
    make_host: MakeHost, open_client: OpenClient, resources: tuple[Resource, ...]
):
    host = make_host({"books": books_with(*resources)})
    async with open_client(host) as client:
        capabilities = client.server_capabilities
    extensions = (capabilities.extensions if capabilities else None) or {}
    assert ("io.modelcontextprotocol/ui" in extensions) == bool(resources)


async def test_a_view_belongs_to_a_tool_by_its_declared_name(
    make_host: MakeHost, open_client: OpenClient
):
    overrides = {"books.find": {"name": "look"}}
    host = make_host({"books": books_with(view())}, tools={"overrides": overrides})
    async with open_client(host) as client:
        (tool,) = (await client.list_tools()).tools
        answer = await client.call_tool("books.find", {})
    assert (tool.name, tool.meta["ui"]["resourceUri"]) == ("look", "ui://books/found.html")
    assert answer.content[0].text == "found"  # views call it by this name


async def test_the_first_of_two_views_counts_and_the_other_is_hidden_with_the_reason(
    make_host: MakeHost,
):
    other = view(uri="ui://books/other.html", name="other_view")
    host = make_host({"books": books_with(view(), other)})
    first, second = host.visible().resources
    assert first.hidden_reason == ""
    assert second.hidden_reason == "'found_view' of plugin 'books' is the view of 'books.find'"
    assert host.visible().tools[0].view == "ui://books/found.html"


async def test_a_tool_for_views_only_says_so(make_host: MakeHost, open_client: OpenClient):
    host = make_host({"books": books_with(views_only=True)})
    async with open_client(host) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.meta["ui"] == {"visibility": ["app"]}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"uri": "books://found"}, "begins with ui://"),
        ({"uri": "ui://books/{part}", "function": lambda part: part}, "uri without variables"),
        ({"mime_type": "text/html"}, "a view has the mime_type"),
        ({"view_of": "books.find"}, "tuple of tool names"),
        ({"meta": {"ui": {1, 2}}}, "its meta is not a JSON object"),
    ],
)
async def test_a_view_that_no_client_would_show_is_refused(
    make_host: MakeHost, fields: dict[str, Any], reason: str
):
    host = make_host({"books": books_with(view(**fields))})
    assert reason in host.manager.records["books"].reason


@pytest.mark.parametrize("letter", ["x", b"x"])
async def test_a_view_that_is_too_large_is_an_error_for_the_client(
    make_host: MakeHost,
    open_client: OpenClient,
    caplog: pytest.LogCaptureFixture,
    letter: str | bytes,
):
    host = make_host({"books": books_with(view(function=lambda: letter * ((1 << 20) + 1)))})
    async with open_client(host) as client:
        with pytest.raises(MCPError, match="internal error"):
            await client.read_resource("ui://books/found.html")
    assert "clients take at most 1,048,576" in caplog.text
