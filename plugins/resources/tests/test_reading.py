"""The resources, read and completed through the SDK's own client, in both protocol generations."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import ResourceTemplateReference
from support.marks import untrusted_tools

from standards_mcp.host import Host
from standards_mcp.loading.discovery import ENTRY_POINT_GROUP
from standards_mcp.server.server import build_server
from standards_mcp_catalog import Catalog, CatalogError, StandardRecord
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_resources import ResourcesPlugin

pytestmark = pytest.mark.anyio

MakeHost = Callable[[Catalog], Host]
ODD_ID = "own id/1&2?x=%20#+"
ODD_URI = "standards://standards/own%20id%2F1%262%3Fx%3D%2520%23%2B"


@pytest.fixture
async def client(store: str, catalog: Catalog, make_host: MakeHost) -> AsyncIterator[Client]:
    # What the protocol does is independent of the store: each generation has one of them.
    mode = "auto" if store == "local" else "legacy"
    async with Client(build_server(make_host(catalog), "1.2.3"), mode=mode) as client:
        yield client


@pytest.fixture
async def unfilled_client(unfilled: LocalCatalog, make_host: MakeHost) -> AsyncIterator[Client]:
    async with Client(build_server(make_host(unfilled), "1.2.3")) as client:
        yield client


async def read(client: Client, uri: str) -> Any:
    (contents,) = (await client.read_resource(uri)).contents
    assert contents.mime_type == "application/json"
    return json.loads(contents.text)


async def completed(client: Client, uri: str, typed: str) -> list[str]:
    ref = ResourceTemplateReference(type="ref/resource", uri=uri)
    return (await client.complete(ref, {"name": "id", "value": typed})).completion.values


async def test_lists_are_resources_and_the_rest_are_templates(unfilled_client: Client):
    plain = (await unfilled_client.list_resources()).resources
    templates = (await unfilled_client.list_resource_templates()).resource_templates
    assert [each.uri for each in plain] == [
        "standards://sets",
        "standards://subjects",
        "standards://grades",
    ]
    assert [each.uri_template for each in templates] == [
        "standards://sets{?page}",
        "standards://subjects{?page}",
        "standards://sets/{id}{?page}",
        "standards://standards/{id}",
        "standards://standards/{id}/tree{?page}",
    ]
    for each in (*plain, *templates):
        assert each.description
        assert each.title
        assert each.mime_type == "application/json"


async def test_tools_warn_of_the_texts_of_standards(unfilled_client: Client):
    assert {"browse_standards", "get_related_standards"} <= await untrusted_tools(unfilled_client)


async def test_the_sets_are_listed_with_the_uri_of_each(client: Client):
    listed = await read(client, "standards://sets")
    assert (listed["total"], listed["page"], listed["pages"]) == (14, 1, 1)
    assert "next" not in listed
    assert listed["complete"] is True
    first = listed["sets"][0]
    assert first["uri"] == "standards://sets/A-Engl-03"
    assert first["title"] == "English Language Arts 03"
    assert first["jurisdiction_title"] == "Aland Common Standards"
    assert not any("source_url" in each for each in listed["sets"])
    assert first.get("records", 2) == 2
    assert (await read(client, "standards://sets?page=1"))["sets"] == listed["sets"]


async def test_subjects_and_grades_are_those_that_there_are_in_order(client: Client):
    subjects = await read(client, "standards://subjects")
    names = [each["subject"] for each in subjects["subjects"]]
    assert names == ["English Language Arts", "Math", "Mathematics", "Science"]
    grades = (await read(client, "standards://grades"))["grades"]
    levels = [each["education_level"] for each in grades]
    assert levels == ["K", *(f"{number:02}" for number in range(1, 13))]
    assert [each["name"] for each in grades][:2] == ["kindergarten", "grade 1"]


HELD = {
    "standards://sets/A-Math-03": ["D3", "C3", "S31", "S32", "S310"],
    "standards://sets/A-Math-04": ["M4", "S43", "D4", "S41", "S42"],
    "standards://sets/B-Scie-03": ["B1", "B2", "T3", "T31", "B3"],
    "standards://sets/Other": ["B4", "B5", "T4", "T41", "B6"],
    "standards://standards/3.NF/tree": ["D3", "C3", "S31", "S32", "S310"],
    "standards://standards/C3/tree": ["C3", "S31", "S32", "S310"],
    "standards://standards/S41/tree": ["S41"],
}


async def test_sets_and_trees_hold_their_standards_each_before_its_parts(client: Client):
    for uri, expected in HELD.items():
        held = await read(client, uri)
        assert (uri, [each["id"] for each in held["standards"]]) == (uri, expected)
        assert (held["total"], held["complete"]) == (len(expected), True)


async def test_a_set_is_read_by_its_title_too_and_says_what_it_is(client: Client):
    held = await read(client, "standards://sets/mathematics%2003")
    assert (held["uri"], held["subject"]) == ("standards://sets/A-Math-03", "Mathematics")
    line = held["standards"][1]
    assert (line["statement_notation"], line["depth"], line["children"]) == ("3.NF.A", 1, 3)
    assert line["text_status"] == "paraphrase"


async def test_a_set_that_no_standard_has_for_its_own_is_read_and_browsed(
    client: Client, catalog: Catalog
):
    held = await read(client, "standards://sets/Other")
    assert (held["id"], held["uri"]) == ("Other", "standards://sets/Other")
    (record,) = await catalog.fetch(["B4"])
    fields = {"also_in_set_titles": ["Another"], "also_in_set_levels": ["04"]}
    await catalog.upsert([StandardRecord.from_dict(record.to_dict() | fields)])
    assert (await read(client, "standards://sets/Other"))["title"] == "Another"
    answer = await client.call_tool("browse_standards", {"parent": "Other"})
    assert [each["_id"] for each in answer.structured_content["results"]] == ["B4", "B6"]


async def test_nothing_of_a_set_is_lost_that_no_parent_names(client: Client, catalog: Catalog):
    (parent,) = await catalog.fetch(["B1"])
    await catalog.upsert([parent.model_copy(update={"child_ids": ()})])
    held = await read(client, "standards://sets/B-Scie-03")
    assert [each["id"] for each in held["standards"]] == ["B1", "B3", "B2", "T3", "T31"]


async def test_a_standard_is_read_with_the_uris_that_lead_on(client: Client):
    held = await read(client, "standards://standards/3.nf.a")
    assert held["standard"]["_id"] == "C3"
    assert held["tree"] == "standards://standards/C3/tree"
    assert held["set"] == "standards://sets/A-Math-03"
    assert [each["id"] for each in held["ancestors"]] == ["D3"]
    assert held["children"][0]["uri"] == "standards://standards/S31"
    assert held["same_code"] == []
    for each in (held["tree"], held["set"], held["children"][0]["uri"]):
        assert await read(client, each)


async def test_any_id_stands_in_a_uri(client: Client):
    held = await read(client, ODD_URI)
    assert (held["standard"]["_id"], held["uri"]) == (ODD_ID, ODD_URI)
    assert (await read(client, held["tree"]))["standards"][0]["uri"] == ODD_URI


async def test_standards_with_the_same_code_are_named(client: Client):
    held = await read(client, "standards://standards/3.NF.A.1")
    other = "X2" if held["standard"]["_id"] == "S31" else "S31"
    assert [each["id"] for each in held["same_code"]] == [other]


async def test_long_contents_come_in_pages_that_lead_on(
    unfilled: LocalCatalog, unfilled_client: Client
):
    await unfilled.upsert(
        StandardRecord(
            id=f"N{number}",
            content="Depth 0: A number",
            standard_set_id=f"set {number % 120}" if number <= 240 else "big/set",
            standard_set_title=f"Set {number % 120}",
            subject=f"Subject {number % 120:03}",
            education_levels=("03",),
            jurisdiction_id="b",
            jurisdiction_title="B",
            statement_notation=f"Q.{number}",
        )
        for number in range(1, 392)
    )
    first = await read(unfilled_client, "standards://sets")
    assert (len(first["sets"]), first["total"], first["pages"]) == (100, 121, 2)
    assert first["next"] == "standards://sets?page=2"
    assert len((await read(unfilled_client, first["next"]))["sets"]) == 21
    subjects = await read(unfilled_client, "standards://subjects")
    assert subjects["next"] == "standards://subjects?page=2"
    assert len((await read(unfilled_client, subjects["next"]))["subjects"]) == 20
    held = await read(unfilled_client, "standards://sets/big%2Fset")
    codes = [each["statement_notation"] for each in held["standards"]]
    assert codes == [f"Q.{number}" for number in range(241, 341)]
    assert held["next"] == "standards://sets/big%2Fset?page=2"
    last = await read(unfilled_client, held["next"])
    assert (len(last["standards"]), "next" in last) == (51, False)
    ref = ResourceTemplateReference(type="ref/resource", uri="standards://standards/{id}")
    codes = (await unfilled_client.complete(ref, {"name": "id", "value": "Q."})).completion
    assert (len(codes.values), codes.has_more) == (100, True)
    assert codes.total is not None
    assert codes.total > 100
    with pytest.raises(MCPError, match="last page of standards://sets is 2, and 3 was asked for"):
        await unfilled_client.read_resource("standards://sets?page=3")
    with pytest.raises(MCPError, match="page: "):
        await unfilled_client.read_resource("standards://sets?page=0")


async def test_a_set_that_is_cut_says_that_it_is_not_complete(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("standards_mcp_resources.tree.MAX_STANDARDS", 2)
    monkeypatch.setattr("standards_mcp_resources.reading.MAX_STANDARDS", 2)
    for uri in ("standards://sets/A-Math-03", "standards://standards/3.NF/tree"):
        assert (await read(client, uri))["complete"] is False
    assert (await read(client, "standards://standards/3.NF.A.2/tree"))["complete"] is True


MISSING = {
    "standards://sets/nowhere": "No standard set is called 'nowhere'. standards://sets lists",
    "standards://standards/3.NF.A.7": "Nearest codes: ",
    "standards://standards/3.NF.A.7/tree": "Nearest codes: ",
    "standards://standards/" + "x" * 600: "600 characters",
    "standards://standards/%20": "empty",
}


async def test_what_is_not_there_is_an_error_that_says_what_to_do(client: Client):
    for uri, message in MISSING.items():
        with pytest.raises(MCPError, match=message):
            await client.read_resource(uri)


async def test_a_title_of_several_sets_is_answered_with_their_ids(client: Client, catalog: Catalog):
    (record,) = await catalog.fetch(["B1"])
    fields = {"id": "B9", "standard_set_id": "B-New", "standard_set_title": "Mathematics 03"}
    await catalog.upsert([record.model_copy(update=fields)])
    with pytest.raises(MCPError, match=r"id: A-Math-03 \(Aland Common Stand.*, Math.*\), B-New"):
        await client.read_resource("standards://sets/mathematics%2003")


async def test_what_another_store_answered_is_noted(
    client: Client, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(catalog, "notes", lambda: ("Answered from elsewhere.",))
    assert (await read(client, "standards://grades"))["notes"] == ["Answered from elsewhere."]


async def test_an_empty_catalog_has_empty_lists(unfilled_client: Client):
    for name in ("sets", "subjects", "grades"):
        assert (await read(unfilled_client, f"standards://{name}"))[name] == []


async def test_a_catalog_that_cannot_be_read_says_so(
    unfilled: LocalCatalog, unfilled_client: Client, monkeypatch: pytest.MonkeyPatch
):
    async def fail() -> None:
        raise CatalogError("the index is gone; run `standards-mcp data build`")

    monkeypatch.setattr(unfilled, "sets", fail)
    with pytest.raises(MCPError, match="data build"):
        await unfilled_client.read_resource("standards://sets")


async def test_sets_are_completed_by_id_and_by_title(client: Client):
    async def sets(typed: str) -> list[str]:
        return await completed(client, "standards://sets/{id}{?page}", typed)

    assert await sets("B-Sc") == ["B-Scie-03", "B-Scie-04"]
    assert await sets("mathematics 0") == [
        *(f"A-Math-0{grade}" for grade in range(3, 7)),
        "B-Math-04",
    ]
    assert await sets("language arts 05") == ["A-Engl-05", "B-Engl-05"]
    assert len(await sets("")) == 14
    assert len(await sets("ACS")) == 8  # the initials of a jurisdiction
    assert await sets("nowhere") == []


async def test_standards_are_completed_by_code_and_by_id(client: Client):
    async def standards(typed: str) -> list[str]:
        return await completed(client, "standards://standards/{id}", typed)

    assert await standards("3.nf.a") == ["3.NF.A", "3.NF.A.1", "3.NF.A.2", "3.NF.A.10"]
    assert await standards("RL.4") == ["RL.4.1", "RL.4.2"]
    assert await standards("R.1") == ["CCRA.R.1"]
    assert await standards("qqq") == []


async def test_codes_beyond_what_an_index_can_list_are_completed(
    client: Client, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    values = await catalog.values("statement_notation")

    async def few(_: str) -> Any:
        return type(values)(counts={"RL.4.1": 1}, complete=False)

    monkeypatch.setattr(catalog, "values", few)
    found = await completed(client, "standards://standards/{id}/tree{?page}", "3.nf")
    assert found[:3] == ["3.NF", "3.NF.A", "3.NF.A.1"]


async def test_an_id_is_completed_where_no_code_begins_so(
    unfilled: LocalCatalog, unfilled_client: Client
):
    record = StandardRecord(
        id="6B9BF846", content="x", standard_set_id="s", standard_set_title="S",
        subject="M", jurisdiction_id="j", jurisdiction_title="J",
    )  # fmt: skip
    await unfilled.upsert([record])
    template = "standards://standards/{id}"
    assert await completed(unfilled_client, template, "6b9") == ["6B9BF846"]


def test_the_distribution_announces_the_plugin():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    points = tomllib.loads(text)["project"]["entry-points"][ENTRY_POINT_GROUP]
    assert points == {
        "resources": f"{ResourcesPlugin.__module__.partition('.')[0]}:ResourcesPlugin"
    }
