"""browse_standards and get_related_standards, called as a client calls them, over both stores."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from standards_mcp.host import Host
from standards_mcp_catalog import Catalog, CatalogError, StandardRecord, open_local
from standards_mcp_catalog.local.catalog import LocalCatalog

pytestmark = pytest.mark.anyio

Ask = Callable[..., Awaitable[Any]]
MakeHost = Callable[[Catalog], Host]
GUID = "6b9bf846-f1ef-4a2c-8c7a-1b2c3d4e5f60"
ODD_ID = "own id/1&2?x=%20#+"


def ids(answer: Any) -> list[str]:
    return [each["_id"] for each in answer["results"]]


BELOW: list[tuple[str, list[str]]] = [
    ("", [GUID.replace("-", "").upper(), "borduria"]),
    ("borduria", ["B-Engl-05", "B-Engl-06", "B-Math-03", "B-Math-04", "B-Scie-03", "B-Scie-04"]),
    ("B-math-03", ["P1"]),
    ("MATHEMATICS 03", ["D3"]),
    ("A-Math-04", ["M4", "D4"]),
    ("A-Engl-04", ["L41", "F43", "R41", "R42"]),
    ("B-Scie-03", ["B1", "B3"]),
    ("3.nf.a", ["S31", "S32", "S310"]),
    ("CCSS.Math.Content.3.NF", ["C3"]),
    ("D4", ["S41", "S42"]),
    # Nothing has these codes itself.
    ("rl.4", ["R41", "R42"]),
    ("L.4", ["L41"]),
    ("RL", ["R31", "R32", "R41", "R42", "A0", "R51"]),
    # Nor is any set called so.
    ("math grade", []),
    ("math 04", ["A-Math-04", "B-Math-04"]),
    ("Science", ["B-Scie-03", "B-Scie-04"]),
]


async def test_each_step_shows_what_stands_directly_below_in_order(ask: Ask):
    for parent, expected in BELOW:
        answer = await ask("browse_standards", parent=parent)
        assert (parent, ids(answer)) == (parent, expected), answer["message"]


async def test_a_jurisdiction_is_known_by_its_name_the_beginning_of_it_and_its_id(ask: Ask):
    for name in ("Aland Common Standards", "aland", "ALAND COMMON", GUID):
        answer = await ask("browse_standards", parent=name)
        assert len(ids(answer)) == 8, name
        assert "8 sets of Aland Common Standards" in answer["message"]


async def test_a_state_is_known_by_its_code_and_its_publisher(ask: Ask, catalog: Catalog):
    (first, second) = await catalog.fetch(["B1", "B2"])
    florida = {"jurisdiction_id": "cpalms", "jurisdiction_title": "CPALMS"}
    ohio = {"jurisdiction_id": "oh", "jurisdiction_title": "Ohio Department of Education"}
    await catalog.upsert(
        [
            first.model_copy(update={**florida, "id": "F1", "standard_set_id": "F"}),
            second.model_copy(update={**ohio, "id": "O1", "standard_set_id": "O"}),
        ]
    )
    for name, expected in (("FL", "F"), ("florida", "F"), ("cpalms", "F"), ("Ohio", "O")):
        answer = await ask("browse_standards", parent=name)
        assert (name, ids(answer)) == (name, [expected]), answer["message"]
        assert answer["message"].startswith("1 set of ")
    missing = await ask("browse_standards", parent="TX")
    assert "No jurisdiction here is 'TX'. No standards of Texas are loaded." in missing["message"]


async def test_a_standard_without_a_code_is_called_by_its_text_and_what_stands_above(
    ask: Ask, catalog: Catalog
):
    parent, record = await catalog.fetch(["B1", "B2"])
    bare = record.model_copy(update={"id": "B7", "statement_notation": None})
    children = (*parent.child_ids, "B7")
    await catalog.upsert([bare, parent.model_copy(update={"child_ids": children})])
    answer = await ask("browse_standards", parent="B7")
    assert "'Learners sort materials by what they are made of' under B.3 " in answer["message"]
    beside = await ask("get_related_standards", standard_id="B.3.2", relation="siblings")
    (shown,) = (each for each in beside["results"] if each["_id"] == "B7")
    assert shown["heading"] == {"statement_notation": "B.3", "description": "Matter and energy"}


async def test_what_begins_a_code_or_is_in_a_title_is_told_from_what_is_called_so(ask: Ask):
    codes = (await ask("browse_standards", parent="RL.4"))["message"]
    assert "2 standards with codes that begin with RL.4." in codes
    mixed = (await ask("browse_standards", parent="RL.5"))["results"]
    assert [each["jurisdiction_title"] for each in mixed] == ["Borduria", "Aland Common Standards"]
    alone = (await ask("browse_standards", parent="RL.4"))["results"]
    assert not any("jurisdiction_title" in each for each in alone)
    sets = (await ask("browse_standards", parent="math 04"))["results"]
    assert [each["jurisdiction_title"] for each in sets] == ["Aland Common Standards", "Borduria"]
    titles = (await ask("browse_standards", parent="science"))["message"]
    assert "2 sets with 'science' in the title." in titles
    nothing = (await ask("browse_standards", parent="math grade"))["message"]
    assert "Leave parent out to begin at the top." in nothing


async def test_the_top_tells_how_to_go_on_and_how_much_there_is(ask: Ask, catalog: Catalog):
    answer = await ask("browse_standards")
    aland, borduria = answer["results"]
    assert "2 jurisdictions" in answer["message"]
    assert "Call browse_standards with parent" in answer["message"]
    assert (aland["description"], aland["children"]) == ("Aland Common Standards", 8)
    if (await catalog.sets()).counted:
        assert (aland["standards"], borduria["standards"]) == (27, 15)
    else:
        assert "standards" not in aland


async def test_several_sets_with_one_title_are_all_shown(ask: Ask, catalog: Catalog):
    twin = (await catalog.fetch(["B1"]))[0].model_copy(
        update={"id": "B9", "standard_set_id": "B-New", "standard_set_title": "Mathematics 03"}
    )
    await catalog.upsert([twin])
    answer = await ask("browse_standards", parent="mathematics 03")
    assert sorted(ids(answer)) == ["A-Math-03", "B-New"]
    assert "2 sets are called 'mathematics 03'" in answer["message"]


async def test_a_paraphrase_says_so(ask: Ask):
    answer = await ask("browse_standards", parent="3.NF.A")
    assert {each["text_status"] for each in answer["results"]} == {"paraphrase"}
    assert "the wording is not the official one" in answer["message"]
    assert "official one" not in (await ask("browse_standards", parent="4.NF"))["message"]


async def test_what_has_no_parts_says_so(ask: Ask):
    answer = await ask("browse_standards", parent="3.NF.A.2")
    assert (answer["success"], answer["error_type"]) == (False, "no_results")
    assert "3.NF.A.2 (Aland Common Standards) has no parts" in answer["message"]


async def test_a_code_that_several_standards_have_takes_the_first_and_names_the_others(ask: Ask):
    answer = await ask("browse_standards", parent="3.NF.A.1")
    assert "Others have this code too: " in answer["message"]
    assert "(Borduria)" in answer["message"]


async def test_of_very_many_with_one_code_a_few_are_named(
    make_host: MakeHost, unfilled: LocalCatalog
):
    await unfilled.upsert(
        each.model_copy(update={"statement_notation": "Q.1", "jurisdiction_id": each.id})
        for each in many(9)
    )
    for tool, given in [
        ("browse_standards", {"parent": "Q.1"}),
        ("get_related_standards", {"standard_id": "Q.1", "relation": "siblings"}),
    ]:
        message = str((await make_host(unfilled).call_tool(tool, given)).structured["message"])
        assert message.count("(B)") >= 5
        assert "and 3 more; give an _id for one of them." in message


@pytest.mark.parametrize("tool", ["browse_standards", "get_related_standards"])
async def test_what_is_not_there_is_answered_with_the_nearest_codes(ask: Ask, tool: str):
    name = "parent" if tool == "browse_standards" else "standard_id"
    more = {"relation": "siblings"} if tool == "get_related_standards" else {}
    answer = await ask(tool, **{name: "3.NF.A.7"}, **more)
    assert answer["error_type"] == "not_found"
    assert "Nearest codes: " in answer["message"]
    assert "3.NF.A.2" in answer["message"]
    assert answer["results"] == []


async def test_long_answers_come_in_pages(make_host: MakeHost, unfilled: LocalCatalog):
    await unfilled.upsert(many(120))
    host = make_host(unfilled)

    async def page(number: int) -> Any:
        given = {"parent": "big", "page": number}
        return (await host.call_tool("browse_standards", given)).structured

    first, last = await page(1), await page(3)
    assert ids(first) == [f"N{number}" for number in range(1, 51)]
    assert "120 at the top of Big." in first["message"]
    assert "These are 1 to 50. Call again with page = 2." in first["message"]
    assert first["next_page"] == 2
    assert "next_page" not in last
    assert ids(last) == [f"N{number}" for number in range(101, 121)]
    assert last["message"].endswith("These are 101 to 120.")
    assert "page is 4; the last one is 3" in (await page(4))["message"]


def many(count: int) -> list[StandardRecord]:
    return [
        StandardRecord(
            id=f"N{number}",
            content=f"Depth 0: Number {number}",
            standard_set_id="big",
            standard_set_title="Big",
            subject="Counting",
            education_levels=("03",),
            jurisdiction_id="b",
            jurisdiction_title="B",
            statement_notation=f"Q.{number}",
        )
        for number in range(1, count + 1)
    ]


async def test_an_empty_catalog_says_who_fills_it(make_host: MakeHost, unfilled: LocalCatalog):
    result = await make_host(unfilled).call_tool("browse_standards", {})
    assert "standards-mcp data import" in result.structured["message"]


async def test_a_set_that_an_index_cannot_list_opens_by_its_id(
    ask: Ask, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    known = await catalog.sets()

    async def sets() -> Any:
        shown = tuple(each for each in known.sets if each.id != "A-Math-04")
        return type(known)(sets=shown, complete=False)

    monkeypatch.setattr(catalog, "sets", sets)
    answer = await ask("browse_standards", parent="A-Math-04")
    assert ids(answer) == ["M4", "D4"]
    assert "more sets than this index can list" in answer["message"]


RELATED: list[tuple[str, str, str, list[str]]] = [
    # of, relation, how it is found, what is found
    ("3.NF.A.1", "siblings", "tree", ["S32", "S310"]),
    ("RL.4.1", "siblings", "tree", ["R42"]),
    ("D4", "siblings", "tree", ["M4"]),
    ("RL.3.1", "next_grade", "code", ["R41"]),
    ("RL.4.1", "next_grade", "code", ["R51"]),
    ("R51", "previous_grade", "code", ["R41"]),
    ("L.4.1a", "next_grade", "strand", ["L51a"]),
    ("S31", "next_grade", "strand", ["S41", "S42"]),
    ("4.NF.A.2", "previous_grade", "strand", ["S31", "S32", "S310"]),
    ("4.NF", "previous_grade", "strand", ["D3", "C3"]),
    ("5.NF.B.3", "next_grade", "strand", ["S61"]),
    ("6.NS.A.1", "previous_grade", "strand", ["S51"]),
    ("RF.4.3", "next_grade", "meaning", ["R51", "L51a"]),
    ("B.3.1", "next_grade", "heading", ["B5", "T41"]),
    ("B.4.7", "previous_grade", "heading", ["B2", "T31"]),
    ("B.3.2.1", "next_grade", "heading", ["T41"]),
    ("B.4.8", "previous_grade", "meaning", ["B2", "B3", "T31"]),
    ("S31", "elsewhere", "meaning", ["P1"]),
    ("P1", "elsewhere", "meaning", ["S31", "S32", "S310"]),
]


async def test_related_standards_say_how_they_were_found(ask: Ask):
    for standard, relation, found_by, expected in RELATED:
        given = {"standard_id": standard, "relation": relation, "max_results": 20}
        answer = await ask("get_related_standards", **given)
        found = {each["found_by"] for each in answer["results"]}
        assert (standard, relation, found) == (standard, relation, {found_by}), answer["message"]
        in_order = ids(answer)
        if found_by in ("tree", "code"):
            assert (standard, relation, in_order) == (standard, relation, expected)
        elif relation in ("next_grade", "previous_grade"):  # without those that only fill up
            assert set(in_order) <= set(expected), (standard, relation, in_order)
        else:
            assert (standard, relation, sorted(in_order)) == (standard, relation, sorted(expected))
        searched = found_by not in ("tree", "code")
        assert all(("score" in each) == searched for each in answer["results"])


async def test_the_message_says_where_the_strand_goes_on(ask: Ask):
    async def message(standard: str, relation: str) -> str:
        given = {"standard_id": standard, "relation": relation}
        return str((await ask("get_related_standards", **given))["message"])

    assert "The strand goes on in 6.NS and 6.RP" in await message("5.NF.B.3", "next_grade")
    assert "The strand comes from 3.NF" in await message("4.NF.A.1", "previous_grade")
    assert "In grade 5 RL.5.1 has the same number" in await message("RL.4.1", "next_grade")
    assert "Under 'Matter and energy' in grade 4 too" in await message("B.3.1", "next_grade")
    assert "No strand of grade 5 is known to continue it" in await message("RF.4.3", "next_grade")


NOTHING: list[tuple[dict[str, str], str, str]] = [
    ({"standard_id": "CCRA.R.1", "relation": "next_grade"}, "no_results", "kindergarten to grade"),
    ({"standard_id": "6.EE.A.1", "relation": "next_grade"}, "no_results", "for grade 7 in Math"),
    ({"standard_id": "B.4.7", "relation": "elsewhere"}, "no_results", "No other jurisdiction here"),
    ({"standard_id": "CCRA.R.1", "relation": "siblings"}, "no_results", "No siblings of"),
    ({"standard_id": " ", "relation": "siblings"}, "invalid_input", "standard_id is empty"),
    ({"standard_id": "x" * 600, "relation": "siblings"}, "invalid_input", "600 characters"),
    ({"standard_id": "S31", "relation": "cousins"}, "invalid_input", "relation: "),
    (
        {"standard_id": "S31", "relation": "siblings", "jurisdiction": "Borduria"},
        "invalid_input",
        "relation elsewhere only",
    ),
    (
        {"standard_id": "S31", "relation": "elsewhere", "jurisdiction": "Bordura"},
        "invalid_input",
        "Did you mean 'Borduria'? There are: 'Aland Common Standards', 'Borduria'.",
    ),
    (
        {"standard_id": "S31", "relation": "elsewhere", "jurisdiction": "aland"},
        "invalid_input",
        "is of Aland Common Standards itself",
    ),
]


async def test_where_there_is_nothing_the_answer_says_why(ask: Ask):
    for given, error_type, message in NOTHING:
        answer = await ask("get_related_standards", **given)
        assert (given, answer["error_type"]) == (given, error_type)
        assert message in answer["message"]


async def test_elsewhere_looks_in_one_jurisdiction_and_in_other_grades_at_last(ask: Ask):
    given = {"standard_id": "S31", "relation": "elsewhere", "jurisdiction": "BORDURIA"}
    assert ids(await ask("get_related_standards", **given)) == ["P1"]
    given = {"standard_id": "RL.4.1", "relation": "elsewhere"}
    answer = await ask("get_related_standards", **given)
    assert set(ids(answer)) <= {ODD_ID, "X2", "A0"}
    assert "of other grades, because none of the same resembles it" in answer["message"]


async def test_elsewhere_begins_with_a_standard_outside_the_asked_jurisdiction(ask: Ask):
    for code, place, own, namesake in (
        ("RL.5.1", "Borduria", "R51", "A0"),
        ("RL.5.1", "Aland", "A0", "R51"),
        ("3.NF.A.1", "Aland", "X2", "S31"),
    ):
        given = {"standard_id": code, "relation": "elsewhere", "jurisdiction": place}
        answer = await ask("get_related_standards", **given)
        assert own not in ids(answer)
        assert f"Others have this code too: {namesake} ({place}" in answer["message"]


async def test_a_long_standard_is_compared_by_its_beginning(
    ask: Ask, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
):
    async def search(text: str, *rest: Any) -> Any:
        asked.append(text)
        return await real(text, *rest)

    asked, real = list[str](), catalog.search
    (record,) = await catalog.fetch(["S41"])
    content = f"Depth 0: {'Compare two fractions. ' * 200}"
    await catalog.upsert([record.model_copy(update={"content": content, "description": ""})])
    monkeypatch.setattr(catalog, "search", search)
    await ask("get_related_standards", standard_id="S41", relation="elsewhere")
    assert {len(text) for text in asked} == {2000}


async def test_any_identifier_of_a_standard_is_understood(ask: Ask):
    for standard in ("S41", "4.NF.A.1", "4.nf.1", "CCSS.Math.Content.4.NF.A.1"):
        answer = await ask("get_related_standards", standard_id=standard, relation="siblings")
        assert ids(answer) == ["S42"]


@pytest.mark.parametrize("tool", ["browse_standards", "get_related_standards"])
async def test_a_catalog_that_cannot_be_read_is_an_error_of_its_own(
    unfilled: LocalCatalog, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch, tool: str
):
    async def fail(*_: object) -> None:
        raise CatalogError("the index is gone; run `standards-mcp data build`")

    for name in ("sets", "find"):
        monkeypatch.setattr(unfilled, name, fail)
    given = {"standard_id": "S31", "relation": "siblings"} if "related" in tool else {}
    result = await make_host(unfilled).call_tool(tool, given)
    assert result.structured["error_type"] == "api_error"
    assert "data build" in result.text


async def test_the_starter_set_knows_the_grade_before_and_after(make_host: MakeHost, planted: Path):
    catalog = open_local(planted)
    host = make_host(catalog)

    async def related(standard: str, relation: str) -> dict[str, Any]:
        given = {"standard_id": standard, "relation": relation}
        return (await host.call_tool("get_related_standards", given)).structured or {}

    async def best(standard: str, relation: str) -> str:
        results = (await related(standard, relation))["results"]
        return str(results[0]["statement_notation"]) if results else ""

    async def said(standard: str, relation: str) -> str:
        return str((await related(standard, relation))["message"])

    assert await best("3.NF.A.1", "next_grade") == "CCSS.Math.Content.4.NF.A.1"
    assert await best("3.NF.A.1", "previous_grade") == "CCSS.Math.Content.2.G.A.3"
    assert await best("RL.4.1", "next_grade") == "CCSS.ELA-Literacy.RL.5.1"
    assert await best("RL.8.1", "next_grade") == "CCSS.ELA-Literacy.RL.9-10.1"
    assert await best("RH.6-8.1", "next_grade") == "CCSS.ELA-Literacy.RH.9-10.1"
    assert await best("RST.6-8.4", "previous_grade") == "CCSS.ELA-Literacy.RI.5.4"
    assert await best("WHST.6-8.2", "previous_grade") == "CCSS.ELA-Literacy.W.5.2"
    assert await best("RI.5.1", "next_grade") == "CCSS.ELA-Literacy.RI.6.1"
    assert await best("5.NF", "next_grade") == "CCSS.Math.Content.6.NS"
    assert await best("8.F.A.1", "next_grade") == "CCSS.Math.Content.HSF-IF.A.1"
    assert await best("HSF-IF.A.1", "previous_grade") == "CCSS.Math.Content.8.F.A.1"
    assert await best("HSF-IF.A.1", "next_grade") == ""
    assert await best("RST.11-12.7", "previous_grade") == "CCSS.ELA-Literacy.RST.9-10.7"
    assert await best("RH.6-8.1", "previous_grade") == "CCSS.ELA-Literacy.RI.5.1"
    assert await best("WHST.6-8.4", "previous_grade") == "CCSS.ELA-Literacy.W.5.4"
    assert await best("RL.K.1", "previous_grade") == ""
    assert await best("MP1", "next_grade") == ""
    assert "In grade 6 to grade 8 CCSS.ELA-Literacy.RH.6-8.1 has the same number" in await said(
        "RH.9-10.1", "previous_grade"
    )
    assert "RST begins in grade 6; up to grade 5" in await said("RST.6-8.1", "previous_grade")
    assert "RF, the foundational skills, ends with grade 5" in await said("RF.5.3", "next_grade")
    assert "is for kindergarten, and no standards of" in await said("K.CC.A.1", "previous_grade")
    assert "Core idea PS1: Matter and Its" in await said("MS-PS1-4", "previous_grade")
    assert "Even the nearest is not much like it" in await said("2-DA-07", "previous_grade")
    await catalog.aclose()


# All that may be named: which of them fit best is a matter of small differences between scores.
BEFORE = {
    "5.NBT.7": ["4.NF.C.5", "4.NF.C.7", "4.NF.C.6", "4.NBT.B.5"],
    "4.MD.3": ["3.MD.D.8", "3.MD.C.5", "3.MD.C.7"],
    "8.F.1": ["7.RP.A.2"],
    "HSN-RN.A.1": ["8.EE.A.1", "8.EE.A.4", "8.EE.A.2", "8.NS.A.2"],
    "RL.5.2": ["RL.4.2"],
    "RH.6-8.1": ["RI.5.1"],
    "MS-PS1-4": ["5-PS1-2", "5-PS1-1"],
    "HS-LS2-1": ["MS-LS2-1"],
    "D2.His.1.6-8": ["D2.His.1.3-5"],
    "1B-AP-10": ["1A-AP-10"],
}
AFTER = {
    "5.NBT.7": ["6.NS.B.3"],
    "4.MD.3": ["5.MD.C.5"],
    "8.F.1": ["HSF-IF.A.1"],
    "3.NF.1": ["4.NF.A.1", "4.NF.B.3", "4.NF.A.2", "4.NF.B.4"],
    "RL.5.2": ["RL.6.2"],
    "RH.6-8.1": ["RH.9-10.1"],
    "5-PS1-1": ["MS-PS1-4"],
    "1-LS1-1": ["4-LS1-1"],
    "D2.Eco.1.3-5": ["D2.Eco.1.6-8"],
    "1B-AP-10": ["2-AP-12", "2-AP-10"],
}


@pytest.mark.parametrize(
    ("relation", "expected"), [("previous_grade", BEFORE), ("next_grade", AFTER)]
)
async def test_a_step_of_a_grade_has_no_fillers(
    make_host: MakeHost, planted: Path, relation: str, expected: dict[str, list[str]]
):
    catalog = open_local(planted)
    host = make_host(catalog)
    for standard, codes in expected.items():
        given = {"standard_id": standard, "relation": relation}
        answer = (await host.call_tool("get_related_standards", given)).structured or {}
        found = [each["statement_notation"] for each in answer["results"]]
        shortened = [re.sub(r"^CCSS\.(Math\.Content|ELA-Literacy)\.", "", each) for each in found]
        assert shortened, standard
        assert not set(shortened).difference(codes), standard
    await catalog.aclose()
