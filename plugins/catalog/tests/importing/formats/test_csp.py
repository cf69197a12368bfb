from __future__ import annotations

from typing import Any

import pytest
from support.records import read_and_told

from standards_mcp_catalog.importing.formats.csp import is_csp, read_csp
from standards_mcp_catalog.importing.report import Problem
from standards_mcp_catalog.records import StandardRecord


def read(value: Any) -> tuple[dict[str, StandardRecord], list[Problem]]:
    records, problems = read_and_told(read_csp(value, "file"))
    return {record.id: record for record in records}, problems


def reasons(problems: list[Problem]) -> list[str]:
    return [problem.reason for problem in problems]


def test_every_standard_knows_its_place_and_its_path_from_the_root(csp_set):
    records, problems = read({"data": csp_set()})
    assert problems == []
    assert list(records) == ["A", "B", "C"]
    leaf = records["C"]
    assert leaf.content.splitlines() == [
        "Depth 0 (W): Sharing", "Depth 1 (W.1): Share beads.", "Depth 2 (W.1a): Share three ways.",
    ]  # fmt: skip
    assert leaf.description == "Share three ways."
    assert (leaf.ancestor_ids, leaf.parent_id, leaf.root_id) == (("A", "B"), "B", "A")
    assert (leaf.depth, leaf.is_leaf, leaf.is_root, leaf.sibling_count) == (2, True, False, 0)
    assert (records["A"].child_ids, records["A"].is_leaf, records["A"].is_root) == (
        ("B",), False, True,
    )  # fmt: skip
    assert leaf.alt_statement_notations == ("W.1.a",)
    assert leaf.asn_identifier == "S1000001"


def test_a_set_gives_its_records_grade_subject_edition_and_terms(csp_set):
    record = read(csp_set())[0]["B"].to_dict()
    assert record["education_levels"] == ["03"]
    assert record["standard_set_title"] == "Grade 03"
    assert record["jurisdiction_title"] == "Willow State"
    assert (record["subject"], record["normalized_subject"]) == ("Willow Mathematics", "Math")
    assert (record["license"], record["rights_holder"]) == ("CC BY 4.0", "Willow")
    assert (record["source_url"], record["document_valid"]) == (
        "https://willow.example/standards", "2031",
    )  # fmt: skip
    assert record["text_status"] == "official"


def test_standards_may_be_a_map_or_an_array(csp_set):
    as_map = csp_set()
    as_array = csp_set(standards=list(as_map["standards"].values()))
    assert read(as_map) == read(as_array) == read([{"data": as_map}])


@pytest.mark.parametrize(
    ("parent", "above", "told"), [(None, ["A"], []), ("X", ["X", "A"], ["unknown parent"])]
)
def test_a_parent_that_is_not_there_gives_way_to_the_nearest_ancestor(
    csp_set, standard, parent, above, told
):
    standards = [standard("A"), standard("B", parentId=parent, ancestorIds=above)]
    records, problems = read(csp_set(standards=standards))
    assert (records["B"].parent_id, records["B"].depth) == ("A", 1)
    assert [(each.reason, each.skipped) for each in problems] == [(each, False) for each in told]


def test_siblings_stand_in_the_order_of_their_position(csp_set, standard):
    standards = [
        standard("A"),
        standard("late", parentId="A", position=2000),
        standard("early", parentId="A", position=1099),
    ]
    records, _ = read(csp_set(standards=standards))
    assert records["A"].child_ids == ("early", "late")
    assert records["early"].sibling_count == 1


@pytest.mark.parametrize(
    ("given", "levels", "told"),
    [
        (["01,02"], ("01", "02"), []),
        (["09-12"], ("09", "10", "11", "12"), []),
        (["Pre-K", "K"], ("Pre-K", "K"), []),
        ("04", ("04",), []),
        (None, (), []),
        (["03", "Saturn"], ("03", "Saturn"), ["unknown education level"]),
    ],
)
def test_grades_are_single_codes_however_dirty_they_come(csp_set, given, levels, told):
    records, problems = read(csp_set(educationLevels=given))
    assert reasons(problems) == told
    assert records["A"].education_levels == levels


def test_a_set_that_is_hidden_or_empty_is_told_with_the_number_of_its_standards(csp_set):
    hidden = csp_set(cspStatus={"value": "Hidden", "notes": None})
    for value, reason, count in (
        (hidden, "hidden set", 3),
        ({"data": {}}, "empty answer", 0),
        ([{"data": {}}], "empty answer", 0),
    ):
        records, problems = read(value)
        assert records == {}
        assert [(each.reason, each.records) for each in problems] == [(reason, count)]


def test_markup_goes_and_meaning_stays(csp_set, standard):
    texts = {
        "1": ("Model with shapes.<sup>★</sup> ", "Model with shapes.★"),
        "2": ("Know x<sup>2</sup> and H<sub>2</sub>O", "Know x² and H₂O"),
        "3": ("Write x > c or\nx < c on a  line", "Write x > c or x < c on a line"),
        "4": ("<p>One</p><p>Two<br/>Three</p>", "One Two Three"),
        "5": ("<ol style='x'>\r\n<li>Add</li><li>Halve</li></ol>", "Add Halve"),
        "6": ("Tom &amp; Ann &lt; AT&T", "Tom & Ann < AT&T"),
        "7": ("6 \u00d7 7, ÷, π, θ, 3²", "6 \u00d7 7, ÷, π, θ, 3²"),
        "8": ("half \ud800 of it\x00", "half ? of it"),
    }
    standards = [standard(id_, given) for id_, (given, _) in texts.items()]
    records, problems = read(csp_set(standards=standards))
    assert problems == []
    expected = {id_: text for id_, (_, text) in texts.items()}
    assert {id_: record.description for id_, record in records.items()} == expected


def test_a_heading_without_text_stays_and_an_empty_leaf_is_skipped(csp_set, standard):
    standards = [
        standard("A", "  "),
        standard("B", parentId="A"),
        standard("C", None, parentId="A"),
        standard("D", "", parentId="A", statementNotation="W.4"),
    ]
    records, problems = read(csp_set(standards=standards))
    assert list(records) == ["A", "B"]
    assert records["B"].content == "Depth 0: \nDepth 1: Say something."
    assert records["A"].child_ids == ("B",)
    assert sorted(reasons(problems)) == ["heading without text", "no text", "no text"]
    assert {problem.where for problem in problems if problem.skipped} == {"C", "D (W.4)"}


def test_links_to_the_same_standard_elsewhere_are_kept(csp_set, standard):
    standards = [standard("A", exactMatch=["urn:guid:FF01", "http://asn.example/S1"])]
    assert read(csp_set(standards=standards))[0]["A"].to_dict()["exact_match_of"] == [
        "FF01", "http://asn.example/S1",
    ]  # fmt: skip


def test_a_user_made_set_has_neither_document_nor_normalized_subject(csp_set):
    records, problems = read(csp_set(id="3FC2", document={}, normalizedSubject=None, license=None))
    assert problems == []
    assert records["A"].standard_set_id == "3FC2"
    assert records["A"].document_id is None


def test_a_jurisdiction_is_a_listing_unless_it_holds_standards(csp_set):
    summary = {"id": "AA", "title": "Willow State ", "type": "state"}
    listed = {"id": "s", "title": "Grade 1", "subject": "x", "educationLevels": ["01"]}
    for value in ({"data": [summary]}, {"data": summary | {"standardSets": [listed]}}):
        assert is_csp(value)
        records, problems = read(value)
        assert records == {}
        assert reasons(problems) == ["listing without standards"]
        assert not problems[0].skipped
    assert list(read(summary | {"standardSets": [csp_set()]})[0]) == ["A", "B", "C"]


@pytest.mark.parametrize(
    "name", ["id", "description", "parentId", "ancestorIds", "position", "statementNotation"]
)
@pytest.mark.parametrize("value", [7, True, "text", [], {}, [[]], [None], {"x": 1}, 1e999])
def test_a_wrong_type_in_a_standard_is_told_and_never_an_exception(csp_set, standard, name, value):
    standards = {"A": standard("A"), "B": standard("B", parentId="A") | {name: value}}
    records, problems = read(csp_set(standards=standards))
    assert len(records) + sum(problem.records for problem in problems) == 2
    if isinstance(value, (bool, dict)):
        assert problems
