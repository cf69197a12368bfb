from __future__ import annotations

from typing import Any

import pytest
from support.records import read_and_told

from standards_mcp_catalog.importing.formats.case import is_case, read_case
from standards_mcp_catalog.importing.report import Problem
from standards_mcp_catalog.records import StandardRecord

DOCUMENT = "d0000000-0000-4000-8000-000000000000"
TODAY = "2030-06-15"


def uuid(letter: str) -> str:
    return f"{letter * 8}-0000-4000-8000-000000000000"


def uri(kind: str, id_: str) -> str:
    return f"https://willow.example/ims/case/v1p0/{kind}/{id_}"


def item(letter: str, **fields: Any) -> dict[str, Any]:
    id_ = uuid(letter)
    return {
        "identifier": id_,
        "uri": uri("CFItems", id_),
        "fullStatement": f"Statement {letter}.",
        "humanCodingScheme": f"W.{letter}",
        "CFItemType": "Standard",
        "educationLevel": ["03"],
        "lastChangeDateTime": "2029-01-01T00:00:00+00:00",
    } | fields


def link(origin: str, destination: str, kind: str = "isChildOf", **fields: Any) -> dict[str, Any]:
    ends = (
        (name, DOCUMENT if letter == "document" else uuid(letter))
        for name, letter in (("originNodeURI", origin), ("destinationNodeURI", destination))
    )
    nodes = {
        name: {"title": "x", "identifier": id_, "uri": uri("CFItems", id_)} for name, id_ in ends
    }
    return {"identifier": "x", "associationType": kind, **nodes} | fields


def package(items: Any = None, links: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "CFDocument": {
            "identifier": DOCUMENT,
            "uri": uri("CFDocuments", DOCUMENT),
            "creator": "Willow Department of Learning",
            "title": "Willow Science",
            "subject": ["Science"],
            "adoptionStatus": "Adopted",
            "version": "2029",
            "licenseURI": {"title": "x", "identifier": uuid("f"), "uri": "https://terms.example"},
        }
        | fields.pop("document", {}),
        "CFItems": items if items is not None else [item("a"), item("b"), item("c")],
        "CFAssociations": links
        if links is not None
        else [link("a", "document"), link("b", "a", sequenceNumber=2), link("c", "a")],
    } | fields


def read(value: Any) -> tuple[dict[str, StandardRecord], list[Problem]]:
    records, problems = read_and_told(read_case(value, "file", TODAY))
    return {each.id[0]: each for each in records}, problems


def test_the_tree_comes_from_is_child_of_alone():
    links = [link("a", "document"), link("b", "a"), link("c", "b", kind="isPartOf")]
    records, problems = read(
        package([item("a"), item("b", humanCodingScheme="  "), item("c")], links)
    )
    assert problems == []
    assert records["b"].parent_id == uuid("a")
    assert records["c"].is_root
    assert records["c"].to_dict()["is_part_of"] == [uuid("b")]
    assert records["b"].content == "Depth 0 (W.a): Statement a.\nDepth 1: Statement b."
    assert records["b"].statement_notation is None


def test_children_are_in_the_order_of_their_numbers_and_of_several_parents_the_first_counts():
    ends = [("a", "document", 1), ("c", "b", 7), ("b", "a", 2), ("c", "a", 1)]
    links = [link(origin, end, sequenceNumber=number) for origin, end, number in ends]
    records = read(package(links=links))[0]
    assert records["a"].child_ids == (uuid("c"), uuid("b"))
    assert records["c"].parent_id == uuid("a")
    assert records["c"].to_dict()["other_parent_ids"] == [uuid("b")]


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        (["KG"], ("K",)),
        ("PK", ("Pre-K",)),
        ("01,02", ("01", "02")),
        (["HS"], ("09", "10", "11", "12")),
        ([], ("03",)),
        (None, ("03",)),
    ],
)
def test_an_item_has_its_levels_in_any_form_and_else_those_of_its_parent(given, levels):
    records, problems = read(package([item("a"), item("b", educationLevel=given), item("c")]))
    assert problems == []
    assert records["b"].education_levels == levels


def test_a_set_is_a_framework_at_one_combination_of_levels():
    items = [
        item("a", educationLevel=["KG", "01", "02"]),
        item("b", educationLevel=["03"]),
        item("c", educationLevel=["06", "08"]),
        item("e", educationLevel=[]),
    ]
    records, _ = read(package(items))
    assert [records[x].standard_set_title for x in "abce"] == [
        "Willow Science (Grades K-2)",
        "Willow Science (Grade 3)",
        "Willow Science (Grades 6, 8)",
        "Willow Science",
    ]
    assert records["b"].standard_set_id == f"{DOCUMENT}_grade-03"
    assert records["e"].standard_set_id == DOCUMENT


@pytest.mark.parametrize("as_list", [True, False])
def test_definitions_come_as_an_object_or_as_a_list(as_list):
    definitions: Any = {"CFLicenses": [{"identifier": uuid("f"), "title": "Open Willow 1"}]}
    value = package(CFDefinitions=[definitions] if as_list else definitions)
    record = read(value)[0]["a"].to_dict()
    assert record["license"] == "Open Willow 1"
    assert record["license_url"] == "https://terms.example"
    assert read(package(CFDefinitions=[]))[1] == []


@pytest.mark.parametrize(
    ("links", "reasons"),
    [
        ([link("a", "b"), link("b", "a"), link("c", "c")], ["cycle broken"] * 2),
        ([link("b", "e")], ["unknown parent"]),
    ],
    ids=["cycles", "a parent outside of the package"],
)
def test_what_makes_no_tree_is_told_and_its_items_read(links, reasons):
    records, problems = read(package(links=links))
    assert set(records) == {"a", "b", "c"}
    assert [problem.reason for problem in problems] == reasons
    assert not any(problem.skipped for problem in problems)


def test_crosswalks_are_kept_and_equal_ends_know_each_other():
    links = [
        link("a", "b", kind="exactMatchOf"),
        link("a", "e", kind="isRelatedTo"),
        link("b", "c", kind="precedes"),
    ]
    records, _ = read(package(links=links))
    assert records["a"].to_dict()["exact_match_of"] == [uuid("b")]
    assert records["b"].to_dict()["exact_match_of"] == [uuid("a")]
    assert records["a"].to_dict()["is_related_to"] == [uuid("e")]
    assert records["b"].to_dict()["precedes"] == [uuid("c")]
    assert "precedes" not in records["c"].to_dict()


@pytest.mark.parametrize(
    ("fields", "links", "status"),
    [
        ({"statusEndDate": "2030-06-01"}, [], "Superseded"),
        ({"statusEndDate": "2031-01-01"}, [], "Adopted"),
        ({}, [link("a", "b", kind="replacedBy")], "Superseded"),
        ({}, [], "Adopted"),
    ],
)
def test_what_has_ended_or_is_replaced_is_superseded(fields, links, status):
    record = read(package([item("a", **fields), item("b")], links))[0]["a"]
    assert record.publication_status == status
    assert record.to_dict().get("replaced_by", []) == [uuid("b")] * len(links)


def test_version_1_1_has_subjects_on_items_and_a_framework_type():
    value = package(
        [item("a", subject="Physics", extensions={"x": 1}), item("b", subject=["Chemistry"])],
        document={"frameworkType": "Competency", "caseVersion": "1.1", "extensions": {}},
    )
    records, problems = read(value)
    assert problems == []
    assert records["a"].subject == "Physics"
    assert records["a"].to_dict()["framework_type"] == "Competency"


def test_a_document_without_subject_takes_it_from_its_title():
    records, problems = read(package(document={"subject": None, "title": "Willow Mathematics"}))
    assert (records["a"].subject, records["a"].normalized_subject) == ("Math", "Math")
    assert [problem.reason for problem in problems] == ["no subject"]


def test_packages_may_be_wrapped_and_several():
    one = package()
    for value in ({"CFPackage": one}, {"CFPackages": [one]}, [one], {"data": one}):
        assert is_case(value)
        assert list(read(value)[0]) == ["a", "b", "c"]


def test_what_is_no_package_is_told_with_the_number_of_its_items():
    value = package()
    listing = {"CFDocuments": [value.pop("CFDocument")]}
    assert is_case(listing)
    records, problems = read(listing)
    assert (records, problems[0].reason) == ({}, "listing without standards")
    problem = read(value)[1][-1]
    assert (problem.reason, problem.records) == ("CASE package without CFDocument", 3)


def test_broken_items_and_associations_are_told_one_by_one():
    value = package([item("a"), 5, {"fullStatement": "x"}], [link("a", "document"), {}, "x"])
    records, problems = read(value)
    assert list(records) == ["a"]
    assert sorted(problem.reason for problem in problems) == [
        "CFItem is no object",
        "association without ends or type",
        "item without identifier",
        "wrong type",
    ]


@pytest.mark.parametrize(
    "name",
    ["identifier", "uri", "fullStatement", "educationLevel", "licenseURI", "humanCodingScheme"],
)
@pytest.mark.parametrize("value", [None, 7, True, "text", [], {}, [[]], {"x": 1}])
def test_a_wrong_type_in_an_item_loses_no_other_item(name, value):
    records, problems = read(package([item("a"), item("b") | {name: value}], []))
    assert len(records) + sum(problem.records for problem in problems) == 2
