"""Another plugin provides the service `Catalog`, and what is built on it works unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from standards_mcp import Plugin
from standards_mcp.testing import Connect
from standards_mcp_lookup import LookupPlugin
from standards_mcp_search import SearchPlugin

DOCUMENT = Path(__file__).parents[3] / "docs" / "plugins" / "services.md"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def example() -> dict[str, Any]:
    """Return the names of the example in the document, which is the plugin that is tested."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (source,) = (block for block in blocks if "class ListCatalog" in block)
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102  - a document of our own
    return names


@pytest.fixture
async def client(connect: Connect) -> AsyncIterator[Client]:
    filters = pytest.importorskip("standards_mcp_filters")
    resources = pytest.importorskip("standards_mcp_resources")
    beside: Mapping[str, type[Plugin[Any]]] = {
        "musterland": example()["MusterlandPlugin"],
        "lookup": LookupPlugin,
        "filters": filters.FiltersPlugin,
        "resources": resources.ResourcesPlugin,
    }
    async with connect(SearchPlugin, name="search", beside=beside, services={}) as client:
        yield client


def found(result: Any) -> list[str]:
    assert not result.is_error, result.content
    return [each["statement_notation"] for each in result.structured_content["results"]]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ({}, ["M.5.2", "M.5.1"]),
        ({"grade": "5", "subject": "Mathematik"}, ["M.5.2", "M.5.1"]),
        ({"notation_prefix": "M.5.1"}, ["M.5.1"]),
    ],
)
async def test_it_is_searched_with_filters(client: Client, more: dict[str, str], codes: list[str]):
    activity = {"activity": "Brüche am Zahlenstrahl", **more}
    assert found(await client.call_tool("find_relevant_standards", activity)) == codes


@pytest.mark.anyio
async def test_its_standards_are_looked_up(client: Client):
    answer = await client.call_tool("get_standard_details", {"standard_id": "m.5.1"})
    assert found(answer) == ["M.5.1"]
    missed = await client.call_tool("get_standard_details", {"standard_id": "M.9.9"})
    assert missed.is_error
    assert missed.structured_content["error_type"] == "not_found"


@pytest.mark.anyio
async def test_its_sets_are_resources_and_can_be_browsed(client: Client):
    (contents,) = (await client.read_resource("standards://sets/M5")).contents
    assert "M.5.2" in contents.text
    (sets,) = (await client.read_resource("standards://sets")).contents
    assert [each["title"] for each in json.loads(sets.text)["sets"]] == ["Mathematik 5"]
    browsed = await client.call_tool("browse_standards", {"parent": "M5"})
    assert found(browsed) == ["M.5.1", "M.5.2"]
