"""Whatever the structure of the data is: no exception, nothing lost in silence, one sound tree."""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.records import read_and_told

from standards_mcp_catalog.importing.formats.case import read_case
from standards_mcp_catalog.importing.formats.csp import read_csp
from standards_mcp_catalog.importing.formats.jsonl import read_jsonl, read_records
from standards_mcp_catalog.importing.formats.tabular import read_table
from standards_mcp_catalog.importing.formats.tree import DEEPEST, Node, build_tree
from standards_mcp_catalog.importing.formats.values import LONGEST_TEXT, clean
from standards_mcp_catalog.importing.importer import ImportOptions, import_sources
from standards_mcp_catalog.importing.report import Problem, SourceError
from standards_mcp_catalog.records import StandardRecord

COMMON = {
    "standard_set_id": "s",
    "standard_set_title": "S",
    "subject": "Mathematics",
    "jurisdiction_id": "j",
    "jurisdiction_title": "J",
}
IDS = st.sampled_from("ABCDEFGH")
NODES = st.lists(
    st.builds(
        Node,
        id=IDS,
        description=st.sampled_from(["", "Some words."]),
        notation=st.sampled_from(["", "W.1"]),
        parents=st.lists(IDS | st.just("missing"), max_size=3).map(tuple),
        order=st.integers(0, 3).map(float),
        levels=st.sampled_from([(), ("03",)]),
    ),
    max_size=20,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def build(nodes: Sequence[Node]) -> tuple[list[StandardRecord], list[Problem]]:
    return read_and_told(build_tree(nodes, lambda _: COMMON, "file"))


@given(NODES)
def test_every_node_is_one_record_or_one_problem(nodes):
    records, problems = build(nodes)
    assert len(records) + sum(problem.records for problem in problems) == len(nodes)


@given(NODES)
def test_every_tree_is_sound(nodes):
    records, _ = build(nodes)
    by_id = {record.id: record for record in records}
    assert len(by_id) == len(records)
    for place, record in enumerate(records):
        ancestors = [by_id[id_] for id_ in record.ancestor_ids]
        assert record.depth == len(ancestors) == record.content.count("\n")
        assert record.is_root == (not ancestors) == (record.parent_id is None)
        assert record.root_id == (ancestors[0].id if ancestors else record.id)
        assert record.is_leaf == (not record.child_ids)
        for child in record.child_ids:
            assert by_id[child].parent_id == record.id
            assert by_id[child].ancestor_ids == (*record.ancestor_ids, record.id)
        if record.parent_id:
            parent = by_id[record.parent_id]
            assert record.id in parent.child_ids
            assert record.sibling_count == len(parent.child_ids) - 1
            assert records.index(parent) < place
            assert record.content.startswith(parent.content)


@pytest.mark.parametrize("levels", [DEEPEST, DEEPEST + 1, DEEPEST + 2, 5_000])
def test_a_tree_of_any_depth_is_read_whole_and_in_proportion(levels):
    nodes = [
        Node(id=str(n), description=f"Level {n}", parents=(str(n - 1),) if n else ())
        for n in range(levels)
    ]
    records, problems = build(nodes[::-1])
    assert len(records) == levels
    assert max(record.depth for record in records) == min(levels - 1, DEEPEST)
    assert len(problems) == (levels - 1) // (DEEPEST + 1)
    assert sum(len(record.content) for record in records) < 2_000 * levels


def test_a_description_of_five_megabytes_is_cut_and_told(csp_set, standard):
    text = "Count beads. " * 400_000
    standards = [standard("A", text), *(standard(f"B{n}", parentId="A") for n in range(50))]
    (long, below, *_), (problem,) = read_and_told(read_csp(csp_set(standards=standards), "file"))
    assert (long.id, len(long.description), problem.reason) == ("A", LONGEST_TEXT, "text cut")
    assert len(below.content) < 5_000


@pytest.mark.parametrize("text", ["<", "<a ", "<a x=", '<a x="', "<sup>", "&#1", "&a", " ", "\0"])
def test_cleaning_takes_time_in_proportion_to_the_text(text):
    assert len(clean(text * 1_000_000)) <= LONGEST_TEXT


@pytest.mark.slow
@given(st.text())
def test_clean_text_is_one_line_that_can_be_written(text):
    found = clean(text + "\ud800")
    assert found == " ".join(found.split())
    assert found.encode("utf-8").decode("utf-8") == found
    assert clean(found) == clean(clean(found))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value inside *value*, itself included."""
    items = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return [path, *(each for key, inner in items for each in places(inner, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    changed = copy.deepcopy(value)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = other
    return changed


CSP: dict[str, Any] = {
    "data": {
        "id": "S1",
        "title": "Grade 3",
        "subject": "Mathematics",
        "educationLevels": ["03"],
        "cspStatus": {"value": "visible"},
        "license": {"title": "CC", "URL": "u", "rightsHolder": "r"},
        "document": {"id": "D", "title": "T", "valid": "2031"},
        "jurisdiction": {"id": "J", "title": "Willow"},
        "standards": {
            "A": {"id": "A", "description": "a", "position": 1, "ancestorIds": []},
            "B": {
                "id": "B", "description": "b", "position": 2, "ancestorIds": ["A"],
                "parentId": "A", "statementNotation": "W.1", "exactMatch": ["x"],
            },
        },
    }
}  # fmt: skip
CASE: dict[str, Any] = {
    "CFDocument": {
        "identifier": "d", "uri": "u/d", "creator": "Willow", "title": "T", "subject": ["Science"],
        "licenseURI": {"identifier": "l", "title": "t", "uri": "u"},
    },
    "CFItems": [
        {"identifier": "a", "fullStatement": "a", "educationLevel": ["03"]},
        {"identifier": "b", "fullStatement": "b", "conceptKeywords": ["k"], "licenseURI": {}},
    ],
    "CFAssociations": [
        {
            "associationType": "isChildOf", "sequenceNumber": 1,
            "originNodeURI": {"identifier": "b"}, "destinationNodeURI": {"identifier": "a"},
        },
        {
            "associationType": "isPeerOf",
            "originNodeURI": {"identifier": "a"}, "destinationNodeURI": {"identifier": "z"},
        },
    ],
    "CFDefinitions": {"CFLicenses": [{"identifier": "l", "title": "L"}]},
}  # fmt: skip


@given(st.sampled_from(places(CSP)), JSON)
@settings(max_examples=100)
def test_anything_at_any_place_of_a_standard_set_is_read_or_told(path, value):
    check(read_csp(replaced(CSP, path, value), "file"))


@given(st.sampled_from(places(CASE)), JSON)
@settings(max_examples=100)
def test_anything_at_any_place_of_a_case_package_is_read_or_told(path, value):
    check(read_case(replaced(CASE, path, value), "file", "2030-01-01"))


@given(JSON)
def test_any_json_at_all_is_read_or_told_by_every_reader(value):
    check(read_csp(value, "file"))
    check(read_case(value, "file", "2030-01-01"))
    check(read_records(value, "file"))
    check(read_jsonl([json.dumps(value)], "file"))


@given(st.binary(max_size=300) | st.text().map(lambda text: b"code,text\n" + text.encode("utf-16")))
def test_any_bytes_at_all_are_read_or_told_as_a_table(data):
    with suppress(SourceError):  # an encoding that is not read, or a wrong quotation mark
        check(read_table(io.BytesIO(data), "file"))


CELLS = st.text("aB1 ,;\t\"'\n|<", max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=12), st.sampled_from(",;\t"))
def test_every_row_of_a_table_is_one_record_or_one_problem_with_its_line(rows, delimiter):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerows([("code", "text", "parent"), *rows])
    records, problems = read_and_told(read_table(io.BytesIO(file.getvalue().encode()), "file"))
    told = [each for each in problems if each.records]
    assert len(records) + len(told) == sum(any(map(str.strip, row)) for row in rows)
    assert all(problem.where.startswith("line ") for problem in told)


def check(items: Iterable[Any]) -> None:
    for each in read_and_told(items)[0]:
        assert StandardRecord.model_validate_json(each.model_dump_json(by_alias=True)) is not None


SETS = st.lists(
    st.tuples(
        st.sampled_from(["K", "03", "04"]),
        st.lists(st.tuples(IDS, st.sampled_from(["one", "two", ""])), max_size=5),
    ),
    max_size=4,
)


@given(first=SETS, second=SETS, replace=st.booleans())
def test_every_import_adds_up_and_is_at_rest_when_repeated(
    first, second, replace, memory_store, csp_set
):
    def load(store: Any, sets: Any) -> Any:
        documents = []
        for number, (grade, rows) in enumerate(sets):
            standards = [{"id": id_, "description": text} for id_, text in rows]
            documents.append(read_csp(csp_set(grade, standards), f"file {number}"))
        return import_sources(store, documents, ImportOptions(replace=replace))

    store = memory_store()
    load(store, first)
    for report in (load(store, second), load(store, second)):
        counted = report.written + report.unchanged + report.collapsed + report.filtered
        assert report.read == counted + report.skipped_records
    assert store.written == []
    assert all(record.id == id_ for id_, record in store.contents.items())
