"""Resources of plugins, through the SDK's own client, in both protocol generations."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, ResourceTemplateReference
from pydantic import BaseModel

from standards_mcp import NotFoundError, Plugin, Resource, hookimpl
from standards_mcp.contributions.resources import find_resource, read_resource
from standards_mcp.host import Host
from standards_mcp.server.handlers import MAX_PAGE_BYTES

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]
OpenClient = Callable[[Host], AbstractAsyncContextManager[Client]]


class Shelf(BaseModel):
    id: str
    page: int


async def shelf(shelf_id: str, page: int = 1) -> Shelf:
    if shelf_id == "gone":
        raise NotFoundError("there is no shelf 'gone'; read library://shelves")
    if shelf_id == "crash":
        raise RuntimeError("a secret")
    return Shelf(id=shelf_id, page=page)


def shelf_ids(typed: str, others: Mapping[str, str]) -> list[str]:
    del others
    return [f"{typed}{number}" for number in range(250)]


RESOURCES = [
    Resource(
        uri="library://shelves/{shelf_id}{?page}",
        name="shelf",
        description="One shelf.",
        function=shelf,
        complete={"shelf_id": shelf_ids},
    ),
    Resource(uri="library://shelves", name="shelves", description="All.", function=lambda: "a, b"),
    Resource(
        uri="library://shelves/first",
        name="library.first",
        title="First",
        description="The first.",
        mime_type="text/markdown",
        function=lambda: "# First",
    ),
    Resource(uri="library://cover", name="cover", description="C.", function=lambda: b"\x00\xff"),
    Resource(uri="library://odd", name="odd", description="Odd.", function=object),
]


def with_resources(*resources: Resource) -> type[Plugin]:
    return type("Made", (Plugin,), {"register_resources": hookimpl(lambda _: list(resources))})


LibraryPlugin = with_resources(*RESOURCES)


def names(host: Host) -> list[str]:
    return [item.published for item in host.visible().resources if not item.hidden_reason]


@pytest.fixture
async def client(open_client: OpenClient, make_host: MakeHost) -> AsyncIterator[Client]:
    async with open_client(make_host({"library": LibraryPlugin})) as client:
        yield client


async def test_plain_resources_and_templates_are_listed_apart(client: Client):
    plain = (await client.list_resources()).resources
    (template,) = (await client.list_resource_templates()).resource_templates
    paths = ("shelves", "shelves/first", "cover", "odd")
    assert [each.uri for each in plain] == [f"library://{path}" for path in paths]
    first = plain[1]
    assert (first.name, first.title, first.mime_type) == ("library_first", "First", "text/markdown")
    assert first.meta == {"standards-mcp/plugin": "library"}
    assert template.uri_template == "library://shelves/{shelf_id}{?page}"
    assert template.name == "shelf"


@pytest.mark.parametrize(
    ("uri", "mime_type", "expected"),
    [
        ("library://shelves", "text/plain", "a, b"),
        ("library://shelves/first", "text/markdown", "# First"),
        ("library://shelves/7?page=3", "application/json", {"id": "7", "page": 3}),
        ("library://shelves/a%20b", "application/json", {"id": "a b", "page": 1}),
        ("library://cover", "application/octet-stream", b"\x00\xff"),
    ],
)
async def test_a_resource_is_read_by_its_uri(
    client: Client, uri: str, mime_type: str, expected: object
):
    (contents,) = (await client.read_resource(uri)).contents
    assert (contents.uri, contents.mime_type) == (uri, mime_type)
    if isinstance(expected, bytes):
        assert base64.b64decode(contents.blob) == expected
    elif isinstance(expected, dict):
        assert json.loads(contents.text) == expected
    else:
        assert contents.text == expected


@pytest.mark.parametrize(
    ("uri", "code", "message"),
    [
        ("library://shelve", INVALID_PARAMS, "did you mean 'library://shelves'?"),
        ("library://shelves/gone", INVALID_PARAMS, "there is no shelf 'gone'"),
        ("library://shelves/7?page=x", INVALID_PARAMS, "page: should be a valid integer"),
        ("library://shelves/crash", INTERNAL_ERROR, "failed with an internal error (id "),
        ("library://odd", INTERNAL_ERROR, "failed with an internal error (id "),
        ("library://cover", INVALID_PARAMS, "served here ([resources] disable has 'cover')"),
    ],
)
async def test_what_goes_wrong_is_a_protocol_error_that_says_what_to_do(
    open_client: OpenClient, make_host: MakeHost, uri: str, code: int, message: str
):
    host = make_host({"library": LibraryPlugin}, resources={"disable": ["cover"]})
    async with open_client(host) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert caught.value.error.code == code
        assert message in caught.value.error.message
        assert caught.value.error.data == {"uri": uri}
        assert "secret" not in caught.value.error.message
        assert (await client.read_resource("library://shelves")).contents


async def test_variables_are_completed_by_the_plugin(client: Client):
    ref = ResourceTemplateReference(type="ref/resource", uri="library://shelves/{shelf_id}{?page}")
    found = (await client.complete(ref, {"name": "shelf_id", "value": "s"})).completion
    none = (await client.complete(ref, {"name": "page", "value": "1"})).completion
    assert (len(found.values), found.total, found.has_more) == (100, 250, True)
    assert (found.values[0], none.values) == ("s0", [])


@pytest.mark.parametrize(
    ("uri", "variable", "message"),
    [
        ("library://shelvs/{shelf_id}", "shelf_id", "Unknown resource: library://shelvs/"),
        ("library://shelves/{shelf_id}{?page}", "shelf", "shelf: unknown argument; did you mean"),
        ("library://shelves", "page", "page: unknown argument; known: none"),
    ],
)
async def test_a_completion_for_what_is_not_there_is_refused(
    client: Client, uri: str, variable: str, message: str
):
    ref = ResourceTemplateReference(type="ref/resource", uri=uri)
    with pytest.raises(MCPError) as caught:
        await client.complete(ref, {"name": variable, "value": "x"})
    assert caught.value.error.code == INVALID_PARAMS
    assert message in caught.value.error.message


async def test_a_list_is_one_page_up_to_a_megabyte(open_client: OpenClient, make_host: MakeHost):
    size = MAX_PAGE_BYTES // 300
    many = with_resources(
        *(
            Resource(uri=f"many://{n}", name=f"n{n}", description="x" * size, function=lambda: "")
            for n in range(302)
        )
    )
    async with open_client(make_host({"many": many})) as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        with pytest.raises(MCPError, match="leave it out for the first page"):
            await client.list_resources(cursor="none of ours")
    count = len(first.resources)
    assert 280 < count < 300
    assert [each.name for each in second.resources] == [f"n{n}" for n in range(count, 302)]
    assert second.next_cursor is None
    few = with_resources(
        *(
            Resource(uri=f"few://{n}", name=f"n{n}", description="x", function=lambda: "")
            for n in range(1_000)
        )
    )
    async with open_client(make_host({"few": few})) as client:
        page = await client.list_resources()
        assert (len(page.resources), page.next_cursor) == (1_000, None)
    huge = Resource(uri="a://b", name="b", description="x" * MAX_PAGE_BYTES, function=lambda: "")
    async with open_client(make_host({"huge": with_resources(huge)})) as client:
        assert len((await client.list_resources()).resources) == 1


@pytest.mark.parametrize(
    ("settings", "served"),
    [
        ({}, ["shelf", "shelves", "library_first", "cover", "odd"]),
        ({"resources": {"disable": ["shel*", "library.*"]}}, ["cover", "odd"]),
        ({"resources": {"enable": ["odd"], "overrides": {"odd": {"name": "even"}}}}, ["even"]),
        ({"profile": "x", "profiles": {"x": {"resources": {"enable": ["odd"]}}}}, ["odd"]),
    ],
)
def test_the_admin_chooses_and_renames_resources_as_tools(
    make_host: MakeHost, settings: dict[str, Any], served: list[str]
):
    assert names(make_host({"library": LibraryPlugin}, **settings)) == served


def _with_number(number: int) -> str:
    """Give a number."""
    return str(number)


@pytest.mark.parametrize(
    ("uri", "function", "expected"),
    [
        ("shelves", _with_number, "its uri 'shelves' has no scheme"),
        ("a://{number", _with_number, "resource 'a': "),
        ("a://{no}", _with_number, "its uri has no variable 'number'"),
        ("a://b{?number}", _with_number, "'number' is in the query, which may be left out"),
        ("library://cover", lambda: "", "'library://cover' already belongs to plugin 'library'"),
    ],
)
def test_a_wrong_resource_fails_the_whole_plugin_with_the_reason(
    make_host: MakeHost, uri: Any, function: Callable[..., Any], expected: str
):
    bad = with_resources(Resource(uri=uri, name="a", description="x", function=function))
    host = make_host({"library": LibraryPlugin, "wrong": bad})
    assert expected in host.manager.records["wrong"].reason
    assert len(names(host)) == 5


@given(st.text(max_size=200))
def test_any_uri_is_found_or_not(uri: str):
    items = [read_resource("library", each) for each in RESOURCES]
    found = find_resource(items, uri)
    assert found is None or found[0].match(uri) == found[1]
