"""get_related_standards: what sources state comes first, and a likeness is called one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.catalogs import FilledCatalogs

from standards_mcp.host import Host
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.relations import Crosswalk, CrosswalkLinks, link

pytestmark = pytest.mark.anyio

Ask = Callable[..., Awaitable[Any]]
TOOL = "get_related_standards"


def stated(answer: Any) -> list[tuple[str, str]]:
    return [
        (each["_id"], each["relation"])
        for each in answer["results"]
        if each["found_by"] == "stated"
    ]


async def state(catalog: Catalog, id_: str, **fields: Any) -> None:
    (record,) = await catalog.fetch([id_])
    await catalog.upsert([type(record).from_dict(record.to_dict() | fields)])


async def test_what_a_standard_states_comes_before_what_is_like_it(ask: Ask, catalog: Catalog):
    await state(
        catalog, "S31", is_related_to=["X4", "Elsewhere 1"], exact_match_of=["P1"],
        document_title="Aland 2030",
    )  # fmt: skip
    answer = await ask(TOOL, standard_id="S31")
    first, second, third, *likeness = answer["results"]
    assert first["description"] == "Name one part of a whole, a unit fraction"
    assert (first["relation"], first["origin"]) == ("exactMatchOf", "Aland 2030")
    assert "score" not in first
    assert {second["_id"], third["_id"]} == {"X4", "Elsewhere 1"}
    unknown = second if second["_id"] == "Elsewhere 1" else third
    assert unknown["loaded"] is False
    assert "3 relations of 3.NF.A.1 that sources state (found_by stated)" in answer["message"]
    assert "1 leads to a standard that is not loaded here" in answer["message"]
    assert "likeness in meaning (found_by meaning), with its score" in answer["message"]
    assert {each["found_by"] for each in likeness} == {"meaning"}
    assert all(0 <= each["score"] <= 1 for each in likeness)
    assert not {"S31", "P1", "X4"} & {each["_id"] for each in likeness}


async def test_where_nobody_states_anything_a_likeness_says_so(ask: Ask):
    answer = await ask(TOOL, standard_id="S31", max_results=2)
    assert stated(answer) == []
    assert 1 <= len(answer["results"]) <= 2
    assert answer["message"].startswith("No source states any. This is likeness in meaning")


async def test_what_is_stated_takes_no_place_of_what_is_like_it(ask: Ask, catalog: Catalog):
    (nearest,) = (await ask(TOOL, standard_id="S31", max_results=1))["results"]
    await state(catalog, "S31", exact_match_of=[nearest["_id"]])
    answer = await ask(TOOL, standard_id="S31", max_results=1)
    assert [each["found_by"] for each in answer["results"]] == ["stated", "meaning"]


async def test_grades_and_places_have_what_is_stated_of_them_first(ask: Ask, catalog: Catalog):
    await state(
        catalog, "S31", precedes=["S43"], follows=["Before"], exact_match_of=["P1", "S32", "Far"]
    )
    cases = [
        ({"relation": "next_grade"}, [("S43", "precedes")]),
        ({"relation": "previous_grade"}, [("Before", "follows")]),
        ({"relation": "siblings"}, []),
        ({"relation": "elsewhere", "jurisdiction": "Borduria"}, [("P1", "exactMatchOf")]),
    ]
    for given, expected in cases:
        answer = await ask(TOOL, standard_id="S31", **given)
        assert (given, stated(answer)) == (given, expected), answer
        assert len({each["_id"] for each in answer["results"]}) == len(answer["results"])
    everywhere = dict(stated(await ask(TOOL, standard_id="S31", relation="elsewhere")))
    assert everywhere == {"P1": "exactMatchOf", "Far": "exactMatchOf", "Before": "follows"}


async def test_a_crosswalk_is_answered_from_both_ends_with_its_name(
    tmp_path: Path, make_host: Callable[[Catalog], Host], catalogs: FilledCatalogs
):
    walk = [link("id:S31", "replacedBy", "id:P1"), link("id:S31", "isPeerOf", "id:P1")]
    async with catalogs.opened("local", tmp_path / "catalog") as catalog:
        assert isinstance(catalog, LocalCatalog)
        catalog.store.write((), (), None, [CrosswalkLinks(Crosswalk("walk.csv", "walk.csv"), walk)])
        result = await make_host(catalog).call_tool(TOOL, {"standard_id": "P1"})
    answer: Any = result.structured
    assert stated(answer) == [("S31", "replaces"), ("S31", "isPeerOf")]
    assert {each["origin"] for each in answer["results"][:2]} == {"walk.csv"}
    assert "paraphrase" in answer["message"]
    assert answer["message"].count("the wording is not the official one") == 1


async def test_of_very_many_relations_the_first_are_shown(ask: Ask, catalog: Catalog):
    await state(catalog, "S31", is_related_to=[f"Q{each}" for each in range(60)])
    answer = await ask(TOOL, standard_id="S31")
    assert len(stated(answer)) == 50
    assert "The first 50 relations of 3.NF.A.1" in answer["message"]
