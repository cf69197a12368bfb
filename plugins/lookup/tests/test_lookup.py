"""get_standard_details, called as a client calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from standards_mcp import CatalogError, ToolResult
from standards_mcp.catalog.local.catalog import LocalCatalog
from standards_mcp.catalog.pinecone.client import PineconeClient
from standards_mcp.catalog.pinecone.fallback import FallbackCatalog
from standards_mcp.testing import Connect, check_plugin
from standards_mcp_lookup import LookupPlugin

Lookup = Callable[[str], ToolResult]


@pytest.fixture
def lookup(ask: Callable[..., ToolResult]) -> Lookup:
    return lambda standard_id: partial(ask, LookupPlugin, "get_standard_details")(
        standard_id=standard_id
    )


def test_the_plugin_keeps_the_rules():
    calls = [("get_standard_details", {"standard_id": "3.NF.A.1"})]
    check_plugin(LookupPlugin, name="lookup", calls=calls)


@pytest.mark.anyio
async def test_a_client_gets_the_details_as_data(connect: Connect, catalog: LocalCatalog):
    async with connect(LookupPlugin, name="lookup", catalog=catalog) as client:
        result = await client.call_tool("get_standard_details", {"standard_id": "4.nf.1"})
    assert result.structured_content["results"][0]["_id"] == "E" * 32


@pytest.mark.parametrize(
    "written",
    ["4.NF.A.1", "4.nf.1", "CCSS.Math.Content.4.NF.A.1", "E" * 32, "e" * 32, " 4-NF-A-1 "],
)
def test_a_standard_is_found_however_its_id_is_written(lookup: Lookup, written: str):
    result = lookup(written)
    assert result.structured["message"] == "Retrieved standard details"
    assert [found["_id"] for found in result.structured["results"]] == ["E" * 32]


def test_details_hold_every_field_and_what_stands_around(lookup: Lookup):
    (details,) = lookup("C" * 32).structured["results"]
    assert details["standard_set_id"] == "Aland-03"
    assert details["ancestors"] == [
        {"_id": "A" * 32, "statement_notation": "3.NF", "description": "Fractions"},
        {"_id": "B" * 32, "statement_notation": "3.NF.A", "description": "Fractions are numbers"},
    ]
    assert [sibling["_id"] for sibling in details["siblings"]] == ["D" * 32]
    assert details["children"] == []
    (parent,) = lookup("3.NF.A").structured["results"]
    assert [child["_id"] for child in parent["children"]] == ["C" * 32, "D" * 32]


def test_several_standards_under_one_code_come_back_ranked(lookup: Lookup):
    result = lookup("3.NF.A.1")
    assert [found["_id"] for found in result.structured["results"]] == ["C" * 32, "F" * 32]
    assert "2 standards match '3.NF.A.1', best first" in result.structured["message"]


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("4.NF.1", "Retrieved standard details. "),
        ("nonsense", "with a keyword search instead. "),
    ],
)
def test_an_answer_from_the_embedded_index_in_place_of_pinecone_says_so(
    ask: Callable[..., ToolResult], catalog: LocalCatalog, written: str, answer: str
):
    nobody = PineconeClient("pcsk_fake", host="http://127.0.0.1:9", deadline=5)
    result = ask(
        LookupPlugin,
        "get_standard_details",
        standard_id=written,
        catalog=FallbackCatalog(nobody, catalog),
    )
    note = "Answered from the embedded index, because of Pinecone: "
    assert f"{answer}{note}" in result.structured["message"]


@pytest.mark.parametrize("written", ["3.NF.A.9", "nonsense", "F" * 31 + "9", "\x00", "%_'\""])
def test_a_miss_says_what_to_try_instead(lookup: Lookup, written: str):
    result = lookup(written)
    assert result.is_error
    assert result.structured["error_type"] == "not_found"
    assert result.structured["message"].startswith(
        f"Standard '{written.strip()}' not found. "
        "Try using find_relevant_standards with a keyword search instead."
    )


def test_a_miss_names_the_nearest_codes(lookup: Lookup):
    message = lookup("3.NF.A.9").structured["message"]
    assert "Nearest codes: " in message
    assert "3.NF.A.1" in message


@pytest.mark.parametrize("written", ["", "   ", "x" * 513])
def test_what_cannot_be_an_id_is_invalid_input(lookup: Lookup, written: str):
    result = lookup(written)
    assert result.is_error
    assert result.structured["error_type"] == "invalid_input"


def test_a_catalog_that_fails_is_an_api_error(lookup: Lookup, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise CatalogError("the catalog is locked; try again")

    monkeypatch.setattr(LocalCatalog, "find", fail)
    assert lookup("3.NF.A.1").structured["error_type"] == "api_error"
