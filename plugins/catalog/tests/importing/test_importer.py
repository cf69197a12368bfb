from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.records import record

from standards_mcp_catalog.importing import importer
from standards_mcp_catalog.importing.formats.case import read_case
from standards_mcp_catalog.importing.formats.csp import read_csp
from standards_mcp_catalog.importing.formats.jsonl import read_jsonl
from standards_mcp_catalog.importing.importer import (
    ImportOptions,
    StrictImportError,
    import_sources,
)
from standards_mcp_catalog.importing.maintenance import export_lines, remove_sets, remove_starter
from standards_mcp_catalog.importing.report import Report
from standards_mcp_catalog.importing.selection import Selection
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.sets import memberships
from standards_mcp_catalog.starter import starter_records
from standards_mcp_catalog.testing import records, small_catalog


def load(store: Any, *sets: Any, selection: Selection | None = None, **options: Any) -> Report:
    documents = [read_csp(each, f"file {number}") for number, each in enumerate(sets)]
    report = import_sources(
        store, documents, ImportOptions(selection=selection or Selection(), **options)
    )
    counted = report.written + report.unchanged + report.collapsed + report.filtered
    assert report.read == counted + report.skipped_records
    return report


def test_an_import_writes_what_it_read_and_says_so(store, csp_set):
    seen: list[int] = []
    written: list[tuple[int, int]] = []
    dry = load(store, csp_set(), dry_run=True)
    assert (dry.new, dry.dry_run, store.writes) == (3, True, 0)
    assert "Would write 3" in "\n".join(dry.lines())
    report = import_sources(
        store,
        [read_csp(csp_set("03"), "one"), read_csp(csp_set("04"), "two")],
        on_read=lambda report: seen.append(report.read),
        progress=lambda done, total: written.append((done, total)),
    )
    assert (report.read, report.new, report.documents) == (6, 3, 2)
    assert list(store.contents) == ["A", "B", "C"]
    assert (seen, written) == ([3, 6], [(3, 3)])


class TestTheFirstImportIntoASeededCatalog:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[LocalStore]:
        with closing(small_catalog(tmp_path / "catalog").store) as store:
            yield store

    def check(self, store: LocalStore, texts: Sequence[str], indexes: int) -> None:
        for text in texts:
            assert text in [hit.record.description for hit in store.search(text, 3).hits]
        assert store.stats().details["index"] == "current"
        assert len([*(Path(store.stats().location) / "index").glob("g*")]) == indexes

    def test_builds_one_index_of_the_seed_and_its_own_records(self, store, csp_set):
        load(store, csp_set())
        assert store.stats().records == len(records()) + 3
        self.check(store, ["Share beads.", records()[0].description], 1)
        load(store, csp_set())
        self.check(store, ["Share beads."], 1)

    def test_that_writes_nothing_leaves_a_searchable_seed(self, store, csp_set):
        load(store, csp_set(), dry_run=True)
        with pytest.raises(StrictImportError):
            load(store, csp_set(standards=[5]), strict=True)
        assert store.stats().records == 0  # as of a new catalog
        self.check(store, [records()[0].description], 1)
        assert store.stats().records == len(records())

    def test_that_is_interrupted_is_run_again(self, store, csp_set, tmp_path):
        def stop(_done: int, _total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            import_sources(store, [read_csp(csp_set(), "one")], progress=stop)
        with closing(small_catalog(tmp_path / "catalog").store) as other:
            self.check(other, ["Share beads.", records()[0].description], 1)
            assert load(other, csp_set()).unchanged == 3

    def test_of_many_records_lets_others_search_the_seed_meanwhile(
        self, store, csp_set, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(importer, "_SHORT", 2)
        found = list[str]()

        def search(_done: int, _total: int) -> None:
            with closing(small_catalog(tmp_path / "catalog").store) as other:
                found.extend(hit.record.id for hit in other.search("fractions", 3).hits)

        import_sources(store, [read_csp(csp_set(), "one")], progress=search)
        assert found
        self.check(store, ["Share beads.", records()[0].description], 2)


def test_only_what_differs_is_written_again(store, csp_set, standard):
    load(store, csp_set("03"), csp_set("04"))
    report = load(store, csp_set("03"), csp_set("04"))
    assert (report.unchanged, report.written, report.collapsed) == (3, 0, 3)
    assert store.written == []
    report = load(store, csp_set(standards=[standard("A", "Sharing"), standard("B", "Too.")]))
    assert store.written == ["A", "B"]
    assert load(store, csp_set(standards=[standard("B", "Two.")])).changed == 1
    assert (store.written, set(store.contents)) == (["B"], {"A", "B", "C"})


def test_a_standard_in_the_sets_of_several_grades_is_one_record_with_all_of_them(store, csp_set):
    report = load(store, csp_set("11"), csp_set("09"), csp_set("10"))
    assert (report.read, report.new, report.collapsed) == (9, 3, 6)
    record = store.contents["C"]
    assert record.education_levels == ("09", "10", "11")
    assert record.standard_set_id == "AA_D1_grade-09"
    assert list(memberships(record)) == ["AA_D1_grade-09", "AA_D1_grade-10", "AA_D1_grade-11"]
    assert memberships(record)["AA_D1_grade-10"].levels == ("10",)


def test_the_order_of_sets_and_of_imports_makes_no_difference(store, csp_set):
    load(store, csp_set("11"))
    load(store, csp_set("09"))
    load(store, csp_set("10"))
    one_by_one = dict(store.contents)
    store.contents.clear()
    load(store, csp_set("10"), csp_set("09"), csp_set("11"))
    assert {id_: record.to_dict() for id_, record in one_by_one.items()} == {
        id_: record.to_dict() for id_, record in store.contents.items()
    }


def test_children_from_every_set_are_children_of_the_one_record(store, csp_set, standard):
    load(
        store,
        csp_set("01", standards=[standard("A"), standard("B", parentId="A")]),
        csp_set("02", standards=[standard("A"), standard("C", parentId="A")]),
    )
    assert store.contents["A"].child_ids == ("B", "C")


def test_a_newer_text_wins_over_the_stored_one_of_another_set(store, csp_set, standard):
    load(store, csp_set("01", standards=[standard("A", "Old.")]))
    load(store, csp_set("02", standards=[standard("A", "New.")]))
    record = store.contents["A"]
    assert record.description == "New."
    assert record.education_levels == ("01", "02")


def test_a_broken_document_stops_a_strict_import_alone(store, csp_set):
    sets = {"data": 5}, csp_set(standards=[*range(50), *csp_set()["standards"].values()])
    with pytest.raises(StrictImportError, match="1 x not a standard set") as caught:
        load(store, *sets, strict=True)
    assert (store.writes, caught.value.report.read) == (0, 53)
    report = load(store, *sets)
    assert report.new == 3
    assert report.skipped == {"not a standard set": 1, "standard is no object": 50}
    assert len([each for each in report.problems if each.skipped]) == 21, "the first of each reason"
    assert report.to_dict()["skipped_records"] == 50


def test_replacing_deletes_what_is_gone_from_the_sets_that_were_read(store, csp_set, standard):
    load(store, csp_set("03"), csp_set("04", standards=[standard("X")]))
    report = load(store, csp_set("03", standards=[standard("A", "Sharing")]), replace=True)
    assert report.deleted == 2
    assert list(store.contents) == ["A", "X"]


def test_a_record_gone_from_one_of_its_sets_stays_in_the_others(store, csp_set, standard):
    load(store, csp_set("03"), csp_set("04"))
    load(store, csp_set("03", standards=[standard("Z")]), replace=True)
    record = store.contents["C"]
    assert (record.standard_set_id, record.education_levels) == ("AA_D1_grade-04", ("04",))
    assert list(memberships(record)) == ["AA_D1_grade-04"]


def test_replacing_two_sets_moves_a_record_from_one_to_the_other(store, csp_set, standard):
    load(store, csp_set("03", standards=[standard("A")]), csp_set("04", standards=[standard("B")]))
    load(
        store,
        csp_set("03", standards=[standard("B")]),
        csp_set("04", standards=[standard("A")]),
        replace=True,
    )
    assert store.contents["A"].education_levels == ("04",)
    assert store.contents["B"].education_levels == ("03",)


def test_a_parent_forgets_a_child_that_was_deleted(store, csp_set, standard):
    both = [standard("A"), standard("B", parentId="A"), standard("C", parentId="A")]
    load(store, csp_set("03", standards=both), csp_set("04", standards=both[:2]))
    load(store, csp_set("03", standards=both[:2]), replace=True)
    assert store.contents["A"].child_ids == ("B",)
    assert "C" not in store.contents


def test_a_set_of_which_something_was_skipped_loses_nothing(store, csp_set, standard):
    load(store, csp_set())
    report = load(store, csp_set(standards=[standard("A"), 5]), replace=True)
    assert report.deleted == 0
    assert report.notes["set not replaced"] == 1
    assert set(store.contents) == {"A", "B", "C"}


def test_what_a_filter_leaves_out_is_not_gone(store, csp_set, standard):
    sets = csp_set("03"), csp_set("04", id="AA_D2", standards=[standard("X")])
    load(store, *sets)
    report = load(store, *sets, replace=True, selection=Selection(grades=("3",)))
    assert (report.deleted, report.filtered) == (0, 1)
    assert "X" in store.contents


def test_filters_take_what_people_write(store, csp_set):
    sets = [csp_set(grade, standards=[{"id": grade, "description": "x"}]) for grade in ("K", "03")]
    for options, expected in (
        ({"grades": ("kindergarten",)}, {"K"}),
        ({"grades": ("K-2", "3rd grade")}, {"K", "03"}),
        ({"subjects": ("math",)}, {"K", "03"}),
        ({"subjects": ("science",)}, set()),
        ({"jurisdictions": ("willow",)}, {"K", "03"}),
        ({"jurisdictions": ("aa",)}, {"K", "03"}),
        ({"jurisdictions": ("Oregon",)}, set()),
    ):
        store.contents.clear()
        report = load(store, *sets, selection=Selection(**options))
        assert set(store.contents) == expected
        assert report.filtered == 2 - len(expected)


def test_ancestors_come_along_with_what_a_filter_lets_through(store, starter):
    root = starter("R", education_levels=["K"])
    leaf = starter("L", education_levels=["03"], ancestor_ids=["R"], parent_id="R")
    import_sources(store, [[root, leaf]], ImportOptions(selection=Selection(grades=("3",))))
    assert set(store.contents) == {"R", "L"}


def test_official_text_takes_the_place_of_a_paraphrase_and_keeps_it(store, csp_set, starter):
    store.contents["A"] = starter("A", text_status="paraphrase", standard_set_id="own words")
    load(store, csp_set("03"))
    assert list(memberships(store.contents["A"])) == ["AA_D1_grade-03"]
    assert store.contents["A"].text_status == "official"
    before = dict(store.contents)
    report = import_sources(store, [[starter("A", text_status="paraphrase")]])
    assert (report.unchanged, store.contents) == (1, before)


@pytest.mark.parametrize(
    ("titles", "title"),
    [
        (["Grade 9", "Grade 10", "Grade 11", "Grade 12"], "Grades 9-12"),
        (["Kindergarten", "Grade 1", "Grade 4"], "Grades K-1, 4"),
        (["Algebra", "Geometry"], "Algebra; Geometry"),
        (["Algebra", "Algebra"], "Algebra"),
        (["A", "B", "C", "Grade 4", "E"], "A; B; C; and 2 more"),
    ],
)
def test_a_record_of_several_sets_has_a_title_for_all_and_each_set_keeps_its_own(
    tmp_path: Path, titles: list[str], title: str
):
    def in_set(id_: int, number: int) -> StandardRecord:
        names = {"standard_set_id": f"set-{number}", "standard_set_title": titles[number]}
        return record(id_, "Repeated." if id_ == 1 else "Alone.", **names)

    local = LocalStore(tmp_path, "none")
    numbers = range(len(titles))
    import_sources(local, [[in_set(id_, n) for n in numbers for id_ in (1, 2 + n)]])
    (found,) = local.fetch(["R001"])
    assert found.standard_set_title == title
    assert sorted(each.title for each in local.sets()) == sorted(titles)
    remove_sets(local, [f"set-{number}" for number in numbers[1:]])
    assert local.fetch(["R001"]) == [in_set(1, 0)]
    local.close()


def test_the_starter_set_can_be_removed_and_nothing_else(store, csp_set, starter):
    load(store, csp_set("03"))
    store.contents["OWN"] = starter("OWN", text_status="paraphrase")
    left, replaced = starter_records()[:2]
    store.contents[left.id] = left
    store.contents[replaced.id] = replaced.model_copy(update={"text_status": "official"})
    assert remove_starter(store, dry_run=True).deleted == 1
    assert left.id in store.contents
    assert remove_starter(store).deleted == 1
    assert set(store.contents) == {"A", "B", "C", "OWN", replaced.id}


def test_removing_a_set_keeps_what_other_sets_hold(store, csp_set, standard):
    load(store, csp_set("03"), csp_set("04", standards=[standard("A", "Sharing ")]))
    report = remove_sets(store, ["AA_D1_grade-03"])
    assert (report.deleted, report.left) == (2, 1)
    assert store.contents["A"].education_levels == ("04",)
    before = dict(store.contents)
    assert remove_sets(store, ["unknown"]).deleted == 0
    assert store.contents == before


def test_what_is_exported_comes_back_the_same(store, csp_set):
    load(store, csp_set("03"), csp_set("04"))
    before = {id_: record.to_dict() for id_, record in store.contents.items()}
    lines = list(export_lines(store))
    store.contents.clear()
    assert import_sources(store, [read_jsonl(lines, "export")]).new == 3
    assert {id_: record.to_dict() for id_, record in store.contents.items()} == before
    assert import_sources(store, [read_jsonl(lines, "export")]).unchanged == 3


def test_the_report_tells_people_everything_that_happened(store, csp_set, standard):
    load(store, csp_set("03"), csp_set("04", standards=[standard("X")]))
    report = load(
        store,
        csp_set("03", standards=[standard("A"), standard("A"), standard("K")]),
        csp_set("04", standards=[standard("X"), standard("K")]),
        csp_set("05", id="AA_D9", standards=[standard("K")]),
        {"data": {}},
        selection=Selection(grades=("3", "4")),
        replace=True,
    )
    text = "\n".join(report.lines())
    for part in ("in 3 documents", "Left out by the filters: ", "and joined: ", "Skipped: empty"):
        assert part in text
    assert "Deleted" not in text
    load(store, csp_set("04", standards=[standard("X"), standard("Y"), standard("A")]))
    gone = load(store, csp_set("04", standards=[standard("X")]), replace=True)
    text = "\n".join(gone.lines())
    assert "Deleted from the replaced sets: 1." in text
    assert "Taken out of the replaced sets, and kept in others: 2." in text


def test_two_records_of_one_id_and_set_that_differ_are_told(store, starter):
    first = starter("A", statement_notation="W.1")
    other = first.model_copy(update={"description": "Other words."})
    assert import_sources(store, [[first, first]]).notes == {}
    report = import_sources(store, [[first], [other]])
    assert (report.read, report.collapsed, report.changed) == (2, 1, 1)
    assert str(report.problems[0]) == (
        "Own: W.1, id A: read twice, and differs (the last one counts)"
    )


def test_a_set_without_a_title_is_called_by_its_grades_and_a_package_by_its_subject(store, csp_set):
    load(store, csp_set("03", title=None))
    assert [each.title for each in store.sets()] == ["Grade 3"]
    store.contents.clear()
    item = {"identifier": "i", "fullStatement": "x", "educationLevel": ["09", "10"]}
    document = {"identifier": "d", "creator": "Elm"}
    for subject, title in (["Art"], "Art (Grades 9-10)"), ([], "Standards of Elm (Grades 9-10)"):
        package = {"CFDocument": {**document, "subject": subject}, "CFItems": [item]}
        import_sources(store, [read_case(package, "x", "2030-01-01")])
        assert [each.title for each in store.sets()] == [title]
