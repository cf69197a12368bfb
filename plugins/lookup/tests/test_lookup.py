"""get_standard_details, called as a client calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp import ToolResult
from standards_mcp.testing import Connect, check_plugin
from standards_mcp_catalog import Catalog, CatalogError, StandardRecord
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.settings import PineconeCatalogSettings
from standards_mcp_lookup import LookupPlugin
from standards_mcp_pinecone.client import FallbackCatalog, PineconeClient

Lookup = Callable[[str], ToolResult]


def made(code: str, place: str) -> StandardRecord:
    return StandardRecord.from_dict(
        {
            "_id": f"{place} {code}",
            "content": f"Depth 0: Learners meet {code}.",
            "standard_set_id": place,
            "standard_set_title": place,
            "subject": "Any",
            "jurisdiction_id": place,
            "jurisdiction_title": place,
            "statement_notation": code,
        }
    )


@pytest.fixture
def lookup(ask: Callable[..., ToolResult]) -> Lookup:
    return lambda standard_id: partial(ask, LookupPlugin, "get_standard_details")(
        standard_id=standard_id
    )


@pytest.mark.slow
def test_the_plugin_keeps_the_rules(ten_records: Catalog):
    calls = [("get_standard_details", {"standard_id": "3.NF.A.1"})]
    check_plugin(LookupPlugin, name="lookup", services={Catalog: ten_records}, calls=calls)


@pytest.mark.anyio
async def test_a_client_gets_the_details_as_data(connect: Connect, catalog: LocalCatalog):
    async with connect(LookupPlugin, name="lookup", services={Catalog: catalog}) as client:
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


@pytest.mark.parametrize(
    ("code", "core_idea"),
    [
        ("MS-PS1-4", "PS1: Matter and Its Interactions"),
        ("3-5-ETS1-2", "ETS1: Engineering Design"),
        ("HS.LS2.1", "LS2: Ecosystems"),
        ("3.NF.A.1", None),
        ("MS-PS9-1", None),
    ],
)
def test_the_code_of_a_science_standard_tells_its_core_idea(
    ask: Callable[..., ToolResult], tmp_path: Path, code: str, core_idea: str | None
):
    catalog = LocalCatalog(tmp_path / "science")
    anyio.run(catalog.upsert, [made(code, "Aland")])
    answer = ask(LookupPlugin, "get_standard_details", standard_id=code, catalog=catalog).structured
    assert answer["results"][0].get("core_idea") == core_idea


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
    settings = PineconeCatalogSettings(api_key="k", host="http://127.0.0.1:9", deadline=90)
    result = ask(
        LookupPlugin,
        "get_standard_details",
        standard_id=written,
        catalog=FallbackCatalog(PineconeClient(settings), catalog),
    )
    note = "Answered from the embedded index, because of Pinecone: "
    assert f"{answer}{note}" in result.structured["message"]


@pytest.mark.parametrize("written", ["3.NF.A.9", "nonsense", "F" * 31 + "9", "\x00", "%_'\""])
def test_a_miss_says_what_to_try_instead(lookup: Lookup, written: str):
    result = lookup(written)
    assert result.is_error
    assert result.structured["error_type"] == "not_found"
    assert result.structured["message"].startswith(
        f"Standard '{written.replace(chr(0), chr(92) + 'u0000')}' not found. "
        "Try using find_relevant_standards with a keyword search instead."
    )


def test_a_miss_names_the_nearest_codes(lookup: Lookup):
    message = lookup("3.NF.A.9").structured["message"]
    assert "Nearest codes: " in message
    assert "3.NF.A.1" in message


def test_codes_are_only_offered_where_they_are_near(lookup: Lookup):
    assert "Nearest" not in lookup("8.3.12.A").structured["message"]


@pytest.mark.parametrize(
    ("written", "family", "command"),
    [
        ("MS-PS1-1", "Next Generation Science Standards", '--jurisdiction "Next Generation'),
        ("NGSS MS-PS1-1", "Next Generation Science Standards", '--jurisdiction "Next Generation'),
        ("https://www.nextgenscience.org/pe/ms-ps1-1-matter", "(NGSS)", "--from-api csp"),
        ("111.5.b.3", "Texas", "--from-api case https://teks-api.texasgateway.org"),
        ("\u00a7110", "Texas", "--from-api case"),
        ("SOL 4.5", "Virginia", '--jurisdiction "Virginia"'),
        ("MA.3.NSO.1.1", "Florida", "cpalms.org"),
    ],
)
def test_a_code_of_a_family_that_is_not_loaded_names_it_and_how_to_load_it(
    lookup: Lookup, written: str, family: str, command: str
):
    message = lookup(written).structured["message"]
    assert "with a keyword search instead. Family: " in message
    assert family in message
    assert "not loaded here. To load: `standards-mcp data import " in message
    assert command in message
    assert "Nearest" not in message


def test_a_missing_code_of_a_family_that_is_loaded_gets_the_nearest(
    ask: Callable[..., ToolResult], tmp_path: Path
):
    science = LocalCatalog(tmp_path / "science")
    anyio.run(science.upsert, [made("MS-PS1-1", "Norland"), made("3.9", "Texas")])
    get = partial(ask, LookupPlugin, "get_standard_details", catalog=science)
    message = get(standard_id="MS-PS1-7").structured["message"]
    assert message.endswith("Nearest codes: MS-PS1-1.")
    assert "Family" not in get(standard_id="TEKS 3.4").structured["message"]


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("4.NF.1, RL.3.1", "E0"),
        ("RL.3.1,4.NF.1", "0E"),
        ("RL.3.1; 4.NF.1\n3.NF.A.2", "0ED"),
        ("RL.3.1 4.NF.1 and 3.NF", "0EA"),
        (f"{'E' * 32}, RL.3.1", "E0"),
    ],
)
def test_several_codes_are_answered_in_their_order(lookup: Lookup, written: str, ids: str):
    result = lookup(written)
    assert "".join(found["_id"][0] for found in result.structured["results"]) == ids
    count = len(ids)
    assert result.structured["message"] == (
        f"Retrieved details of {count} of {count} standards, in the order asked for"
    )
    assert "not_found" not in result.structured


def test_each_of_several_results_says_what_it_was_asked_for(lookup: Lookup):
    results = lookup("3.NF.A.1 and RL.3.1").structured["results"]
    assert [(found["asked_for"], found["_id"][0]) for found in results] == [
        ("3.NF.A.1", "C"), ("3.NF.A.1", "F"), ("RL.3.1", "0")
    ]  # fmt: skip
    assert "asked_for" not in lookup("RL.3.1").structured["results"][0]


def test_what_is_missing_of_several_is_told_with_the_reason(lookup: Lookup):
    answer = lookup("RL.3.1, 3.NF.A.7, MS-PS1-1, MS-PS1-2, XYZ").structured
    assert answer["success"]
    assert answer["not_found"] == ["3.NF.A.7", "MS-PS1-1", "MS-PS1-2", "XYZ"]
    assert "Retrieved details of 1 of 5 standards" in answer["message"]
    assert "'3.NF.A.7' (Nearest codes: " in answer["message"]
    assert "; 'MS-PS1-1', 'MS-PS1-2' (Family: the Next Generation" in answer["message"]
    assert answer["message"].endswith("; 'XYZ'")


def test_several_codes_of_which_none_is_there_are_not_found(lookup: Lookup):
    result = lookup("RL.9.1, XYZ.7")
    assert result.is_error
    assert result.structured["error_type"] == "not_found"
    assert result.structured["message"].startswith("None of the 2 standards found. Try using ")


def test_twenty_codes_are_answered_and_one_more_is_too_many(lookup: Lookup):
    codes = [f"3.NF.A.{number}" for number in range(1, 22)]
    assert len(lookup(", ".join(codes[:20])).structured["not_found"]) == 18
    refused = lookup(", ".join(codes))
    assert refused.structured["error_type"] == "invalid_input"
    assert "names 21 standards; one call answers at most 20" in refused.structured["message"]


def test_a_code_that_looks_like_a_list_is_one(ask: Callable[..., ToolResult], tmp_path: Path):
    own = LocalCatalog(tmp_path / "own")
    codes = ["6-8.Data and Analysis.Storage", "7.1, 7.2", "7.1"]
    anyio.run(own.upsert, [made(code, "Norland") for code in codes])
    for code in codes:
        (found,) = ask(
            LookupPlugin, "get_standard_details", standard_id=code, catalog=own
        ).structured["results"]
        assert found["statement_notation"] == code


@pytest.mark.parametrize(
    "written",
    ["standard 4.NF.1", "CC.4.NF.1", "4NFA1", "Standard: [4.NF.A.1].", "see 4.NF.1 there"],
)
def test_a_code_is_found_behind_words_and_in_older_forms(lookup: Lookup, written: str):
    answer = lookup(written).structured
    assert [found["_id"] for found in answer["results"]] == ["E" * 32]
    assert answer["message"] == "Retrieved standard details"


def test_the_mark_of_a_state_leads_to_its_own_record_and_else_to_the_common_core(
    ask: Callable[..., ToolResult], tmp_path: Path
):
    states = LocalCatalog(tmp_path / "states")
    places = ["New York", "Common Core State Standards", "Ohio"]
    anyio.run(states.upsert, [made("3.NF.1", place) for place in places])
    get = partial(ask, LookupPlugin, "get_standard_details", catalog=states)
    own = get(standard_id="NY-3.NF.1").structured
    assert [found["jurisdiction_title"] for found in own["results"]] == ["New York"]
    assert own["message"] == "Retrieved standard details"
    other = get(standard_id="CA.3.NF.1").structured
    assert [found["jurisdiction_title"] for found in other["results"]] == [places[1]]
    assert "which California may have changed" in other["message"]
    assert '--jurisdiction "California"`' in other["message"]
    assert get(standard_id="TX.3.NF.1").is_error


@pytest.mark.parametrize("written", ["", "   ", "x" * 513, "x, " * 5000, f"3.NF.1, {'y' * 600}"])
def test_what_cannot_be_an_id_is_invalid_input(lookup: Lookup, written: str):
    result = lookup(written)
    assert result.is_error
    assert result.structured["error_type"] == "invalid_input"


def test_a_catalog_that_fails_is_an_api_error(lookup: Lookup, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise CatalogError("the catalog is locked; try again")

    monkeypatch.setattr(LocalCatalog, "find_all", fail)
    assert lookup("3.NF.A.1").structured["error_type"] == "api_error"


def test_a_retired_standard_says_so_and_what_replaces_it(tmp_path: Path, connect: Connect) -> None:
    old = made("Q.1", "Aland").model_copy(update={"publication_status": "Deprecated"})
    new = StandardRecord.from_dict(made("Q.2", "Aland").to_dict() | {"replaces": [old.id]})

    async def ask() -> list[Any]:
        catalog = LocalCatalog(tmp_path / "catalog", "none")
        await catalog.upsert([old, new])
        async with connect(LookupPlugin, name="lookup", services={Catalog: catalog}) as client:
            found = [
                await client.call_tool("get_standard_details", {"standard_id": code})
                for code in ("Q.1", "Q.2")
            ]
        await catalog.aclose()
        return [each.structured_content for each in found]

    retired, current = anyio.run(ask)
    assert "Q.1 is retired (Deprecated); replaced by Q.2" in retired["message"]
    (successor,) = retired["results"][0]["retired"]["replaced_by"]
    assert (successor["_id"], successor["origin"]) == (new.id, "Aland")
    assert current["message"] == "Retrieved standard details"
    assert "retired" not in current["results"][0]
