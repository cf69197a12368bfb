"""Relations from packages and crosswalks, into the embedded store and out of it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.importing.files import open_sources
from standards_mcp_catalog.importing.formats.case import read_case
from standards_mcp_catalog.importing.importer import (
    ImportOptions,
    StrictImportError,
    import_sources,
)
from standards_mcp_catalog.importing.maintenance import export_lines, remove_crosswalk, remove_sets
from standards_mcp_catalog.importing.readers import read_documents
from standards_mcp_catalog.importing.report import Report
from standards_mcp_catalog.local.store import LocalStore

TODAY = "2030-06-15"


def uuid(name: str) -> str:
    """Return an identifier such as that of item 1 of framework a: ``a1``."""
    return f"{name:0>8}-0000-4000-8000-000000000000"


def package(framework: str, items: str, *links: tuple[str, str, str]) -> dict[str, Any]:
    """Return a CASE package with items such as ``a1``, and links between items of any package."""
    title = {"title": f"Framework {framework.upper()}", "creator": framework.upper()}
    return {
        "CFDocument": {"identifier": uuid(f"{framework}00"), "subject": ["Science"], **title},
        "CFItems": [
            {
                "identifier": uuid(name),
                "fullStatement": f"Learn {name}.",
                "humanCodingScheme": f"{framework.upper()}.{name[1:]}",
                "educationLevel": ["03"],
            }
            for name in items.split()
        ],
        "CFAssociations": [
            {
                "associationType": kind,
                "originNodeURI": {"identifier": uuid(origin)},
                "destinationNodeURI": {"identifier": uuid(destination)},
            }
            for origin, kind, destination in links
        ],
    }


class Loader:
    """A store, and imports into it as the command line does them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.store = LocalStore(folder / "catalog", "none")

    def packages(self, *packages: Any, **options: Any) -> Report:
        documents = [read_case(each, "package", TODAY) for each in packages]
        return import_sources(self.store, documents, ImportOptions(**options))

    def files(self, texts: dict[str, str], **options: Any) -> Report:
        """Import a folder with files by their names and texts."""
        folder = self.folder / "in"
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        documents = read_documents(open_sources([str(folder / name) for name in texts]))
        return import_sources(self.store, documents, ImportOptions(**options))

    def table(self, text: str, name: str = "walk.csv", **options: Any) -> Report:
        return self.files({name: text}, **options)

    def crosswalks(self) -> list[Any]:
        return self.store.database.relations.crosswalks()

    def related(self, id_: str) -> list[Any]:
        (found,) = self.store.relations(self.store.fetch([id_]))
        return list(found)

    def seen(self, name: str) -> list[tuple[str, str, str, bool]]:
        """Return kind, identifier, origin and whether it is loaded, of all that relates to one."""
        return [
            (each.kind, each.identifier, each.origin, each.record is not None)
            for each in self.related(uuid(name))
        ]

    def kinds(self, name: str) -> list[tuple[str, str]]:
        return [(kind, identifier[6:8]) for kind, identifier, _, _ in self.seen(name)]


@pytest.fixture
def loader(tmp_path: Path) -> Iterator[Loader]:
    loader = Loader(tmp_path)
    yield loader
    loader.store.close()


def test_associations_are_answered_from_both_ends(loader: Loader):
    report = loader.packages(
        package(
            "a", "a1 a2 a3 a4 a5",
            ("a1", "precedes", "a2"),
            ("a1", "replacedBy", "a3"),
            ("a1", "isPartOf", "a4"),
            ("a1", "exactMatchOf", "a5"),
            ("a2", "isChildOf", "a1"),
        )
    )  # fmt: skip
    assert report.relations == 4
    assert loader.kinds("a1") == [
        ("exactMatchOf", "a5"), ("replacedBy", "a3"), ("isPartOf", "a4"), ("precedes", "a2"),
    ]  # fmt: skip
    assert loader.kinds("a2") == [("follows", "a1")]
    assert loader.kinds("a3") == [("replaces", "a1")]
    assert loader.kinds("a4") == [("hasPart", "a1")]
    assert loader.kinds("a5") == [("exactMatchOf", "a1")]


def test_an_end_that_is_not_loaded_is_named_until_it_is(loader: Loader):
    loader.packages(package("a", "a1", ("a1", "exactMatchOf", "b1"), ("c1", "replacedBy", "a1")))
    assert loader.seen("a1") == [
        ("exactMatchOf", uuid("b1"), "Framework A", False),
        ("replaces", uuid("c1"), "Framework A", False),
    ]
    loader.packages(package("b", "b1"), package("c", "c1"))
    assert loader.seen("b1") == [("exactMatchOf", uuid("a1"), "Framework A", True)]
    assert loader.seen("c1") == [("replacedBy", uuid("a1"), "Framework A", True)]


def test_a_package_of_relations_between_others_is_a_crosswalk(loader: Loader):
    walk = package("w", "", ("a1", "isPeerOf", "b1"), ("a1", "isPeerOf", "x1"))
    report = loader.packages(package("a", "a1"), package("b", "b1"), walk)
    assert (report.relations, report.crosswalk_rows) == (2, 2)
    assert loader.seen("b1") == [("isPeerOf", uuid("a1"), "Framework W", True)]
    assert [(each, count) for each, count in loader.crosswalks()] == [
        ((uuid("w00"), "Framework W"), 2)
    ]


def test_what_no_association_of_items_is_stays_out(loader: Loader):
    report = loader.packages(
        package("a", "a1", ("a00", "replacedBy", "b00"), ("a1", "exemplar", "b1")),
        package("w", "", ("a1", "unheardOf", "b1")),
    )
    assert loader.seen("a1") == []
    assert report.notes["association of the document"] == 1
    assert report.skipped["unknown relation"] == 1


def test_several_sources_of_one_relation_are_all_its_origin(loader: Loader):
    loader.packages(
        package("a", "a1", ("a1", "isRelatedTo", "b1")),
        package("b", "b1", ("b1", "isRelatedTo", "a1")),
    )
    loader.table("from,to,relation\nA.1,B.1,related\n")
    assert loader.seen("a1") == [
        ("isRelatedTo", uuid("b1"), "Framework A; Framework B; walk.csv", True)
    ]


def test_a_package_that_is_imported_again_says_what_it_says_now(loader: Loader):
    loader.packages(package("a", "a1 a2", ("a1", "precedes", "a2"), ("a1", "isPeerOf", "x1")))
    loader.packages(package("a", "a1 a2", ("a2", "precedes", "a1")))
    assert loader.kinds("a1") == [("follows", "a2")]


def test_a_package_that_no_longer_relates_others_is_no_crosswalk(loader: Loader):
    loader.packages(package("a", "a1"), package("b", "b1", ("a1", "isPeerOf", "c1")))
    assert loader.kinds("a1") == [("isPeerOf", "c1")]
    loader.packages(package("a", "a1"))
    assert len(loader.crosswalks()) == 1
    loader.packages(package("b", "b1"))
    assert loader.crosswalks() == []
    assert loader.kinds("a1") == []


def test_a_crosswalk_relates_standards_by_code_and_id(loader: Loader):
    loader.packages(package("a", "a1 a2"), package("b", "b1 b2"))
    table = f"from,to,relation\nA.1,b.1,exact match\n{uuid('a2')},B.2,replaced by\n"
    report = loader.table(table)
    assert (report.relations, report.read, report.has_effect) == (2, 0, True)
    assert list(report.lines()) == [
        "Read 0 records in 1 document.",
        "Took 2 relations between standards.",
    ]
    assert loader.seen("b1") == [("exactMatchOf", uuid("a1"), "walk.csv", True)]
    assert loader.seen("b2") == [("replaces", uuid("a2"), "walk.csv", True)]


def test_rows_that_are_not_clear_are_told_by_line_and_never_guessed(loader: Loader):
    twin = package("c", "c1")
    twin["CFItems"][0]["humanCodingScheme"] = "B.1"
    loader.packages(package("a", "a1"), package("b", "b1 b2"), twin)
    problems = {
        "A.1,B.1,exactMatchOf": "ambiguous code (2 standards have 'B.1'; give one of their ids",
        "A.1,B.9,exactMatchOf": "unknown code ('B.9' is not loaded",
        "A.1,B.2,looks like": "unknown relation ('looks like'; use one of exactMatchOf, repl",
        "A.1,,exactMatchOf": "code missing",
        "A.1,a.1,exactMatchOf": "related to itself",
        f"A.1,{uuid('b9')},exactMatchOf": "unknown code",
    }
    report = loader.table("\n".join(("from,to,relation", *problems)))
    told = "\n".join(report.lines())
    assert (report.relations, report.has_effect) == (0, False)
    assert "Took 0 relations" in told
    for number, problem in enumerate(problems.values(), 2):
        assert f"line {number}: {problem}" in told
    assert loader.seen("a1") == []
    assert loader.table(f"from,to,relation\nA.1,{uuid('c1')},peer\n").relations == 1
    assert loader.kinds("a1") == [("isPeerOf", "c1")], "an id is clear where a code is not"


@pytest.mark.parametrize("code", ["NY-AA.1", "ny-aa.1", "NY: AA.1", "New York AA.1", "NYS-AA.1"])
def test_a_code_behind_a_place_is_that_of_the_place(loader: Loader, code: str):
    agency = "New York State Education Department"
    loader.store.write([standard("X", "AA.1", agency), standard("Y", "AA.1", "Ohio")])
    assert loader.table(f"from,to,relation\n{code},OH-AA.1,same\n").relations == 1
    assert [each.identifier for each in loader.related("X")] == ["Y"]


def test_the_code_of_another_place_is_not_guessed(loader: Loader):
    codes = {
        "X": ("AA.1", "Ohio"),
        "Y": ("3.FR.1", "Massachusetts"),
        "Z": ("NY-BB.1", "Ohio"),
        "U": ("BB.1", "New York"),
        "V": ("3.NF.1", "Common Core State Standards"),
    }
    loader.store.write([standard(id_, *of) for id_, of in codes.items()])
    for code in ("NY-AA.1", "MA.3.FR.1", "NY-3.NF.1"):
        report = loader.table(f"from,to,relation\n{code},AA.1,same\n")
        assert report.skipped == {"unknown code": 1}, code
    # A code that is written so comes before one of the place.
    assert loader.table("from,to,relation\nNY-BB.1,AA.1,same\n").relations == 1
    assert [each.identifier for each in loader.related("X")] == ["Z"]


def test_a_crosswalk_is_replaced_by_what_it_says_now(loader: Loader):
    loader.packages(package("a", "a1 a2"), package("b", "b1"))
    loader.table("from,to,relation\nA.1,B.1,same\nA.2,B.1,same\n")
    loader.table("from,to,relation\nA.1,B.1,related\n", "other.csv")
    loader.table("from,to,relation\nA.1,B.1,part of\n")
    assert loader.kinds("b1") == [("hasPart", "a1"), ("isRelatedTo", "a1")]
    # One of which nothing can be taken leaves what there is.
    loader.table("from,to,relation\nA.9,B.1,same\n")
    assert len(loader.kinds("b1")) == 2


def test_standards_and_their_crosswalk_may_come_in_one_import(loader: Loader):
    files = {
        "a walk.csv": "from,to,relation\nM.1,M.2,precedes\n",
        "b.csv": "code,text\nM.1,Count.\nM.2,Compare.\n",
    }
    for dry_run in (True, False):
        report = loader.files(files, dry_run=dry_run)
        assert (report.relations, report.new, report.documents) == (1, 2, 2)
        assert bool(loader.crosswalks()) == (not dry_run)


def test_no_code_means_a_standard_that_the_same_import_deletes(loader: Loader):
    header = "id,code,text,set_id\n"
    loader.table(f"{header}e1,EL.1,Count.,E\ne2,EL.2,Compare.,E\n", "elm.csv")
    files = {
        "both.csv": "from,to,relation\nEL.1,EL.2,precedes\nEL.1,EL.3,precedes\n",
        # Another id for EL.1, and no EL.2 any more.
        "elm.csv": f"{header}new1,EL.1,Count.,E\nnew3,EL.3,Add.,E\n",
    }
    for dry_run in (True, False):
        report = loader.files(files, replace=True, dry_run=dry_run)
        assert (report.relations, report.deleted) == (1, 2)
        assert report.skipped == {"unknown code": 1}
    found = [(each.identifier, each.record is not None) for each in loader.related("new1")]
    assert found == [("new3", True)]


def test_an_import_tells_what_it_takes_from_crosswalks(loader: Loader):
    loader.packages(package("a", "a1 a2"), package("b", "b1", ("a1", "isPeerOf", "c1")))
    loader.table("from,to,relation\nA.1,B.1,same\nA.2,B.1,same\n")
    loader.table("from,to,relation\nA.2,B.1,related\n", "other.csv")
    for dry_run in (True, False):
        report = loader.packages(package("a", "a1"), replace=True, dry_run=dry_run)
        assert [str(each) for each in report.problems] == [
            "other.csv: relations of a crosswalk deleted (1, with their standards)",
            "walk.csv: relations of a crosswalk deleted (1, with their standards)",
        ]
    told = ["walk.csv: crosswalk replaced (1 relation before, 1 now)"]
    for dry_run in (True, False):
        report = loader.table("from,to,relation\nA.1,B.1,related\n", dry_run=dry_run)
        assert [str(each) for each in report.problems] == told
    report = loader.packages(package("b", "b1"))
    told = ["Framework B: crosswalk replaced (1 relation before, 0 now)"]
    assert [str(each) for each in report.problems] == told


def test_a_strict_import_takes_all_of_a_crosswalk_or_nothing(loader: Loader):
    loader.packages(package("a", "a1"), package("b", "b1"))
    table = "from,to,relation\nA.1,B.1,same\nA.1,B.9,same\n"
    with pytest.raises(StrictImportError, match="unknown code"):
        loader.table(table, strict=True)
    assert loader.crosswalks() == []


def test_what_crosswalks_say_of_a_set_goes_with_it(loader: Loader):
    loader.packages(
        package("a", "a1 a2", ("a1", "isPeerOf", "b1")),
        package("b", "b1 b2", ("b2", "isPeerOf", "a2")),
    )
    loader.table("from,to,relation\nA.1,B.1,same\nA.1,A.2,precedes\n")
    remove_sets(loader.store, [f"{uuid('b00')}_grade-03"])
    # That a source states it stays; the other end is no longer loaded.
    assert loader.seen("a1") == [
        ("isPeerOf", uuid("b1"), "Framework A", False),
        ("precedes", uuid("a2"), "walk.csv", True),
    ]
    assert loader.kinds("a2") == [("follows", "a1")]
    remove_sets(loader.store, [f"{uuid('a00')}_grade-03"])
    assert loader.crosswalks() == []


def test_a_crosswalk_is_removed_alone(loader: Loader):
    loader.packages(package("a", "a1", ("a1", "isPeerOf", "b1")), package("b", "b1"))
    loader.table("from,to,relation\nA.1,B.1,same\n")
    assert remove_crosswalk(loader.store, "walk.csv").relations == 1
    assert loader.kinds("a1") == [("isPeerOf", "b1")]
    assert loader.crosswalks() == []


class TestAnExport:
    @pytest.fixture
    def other(self, loader: Loader) -> Iterator[Loader]:
        other = Loader(loader.folder / "other")
        yield other
        other.store.close()

    @pytest.fixture(autouse=True)
    def filled(self, loader: Loader) -> None:
        loader.packages(
            package("a", "a1 a2", ("a1", "isPeerOf", "b1"), ("c1", "isPeerOf", "d1")),
            package("b", "b1 b2", ("b2", "replacedBy", "a2"), ("a1", "precedes", "a2")),
        )
        loader.store.write([standard("S12345AB", "X.1"), standard("own id", "X.2")])
        loader.table("from,to,relation\nA.1,B.1,same\nX.1,A.1,related\nX.2,X.1,part of\n")

    def test_brings_crosswalks_along_and_loses_nothing(self, loader: Loader, other: Loader):
        lines = list(export_lines(loader.store))
        report = other.table("\n".join(lines), "all.jsonl")
        assert (report.crosswalk_rows, dict(report.skipped)) == (5, {})
        crosswalks = other.crosswalks()
        assert crosswalks == loader.crosswalks()
        assert [(each.id, count) for each, count in crosswalks] == [
            (uuid("a00"), 1), (uuid("b00"), 1), ("walk.csv", 3),
        ]  # fmt: skip
        assert list(export_lines(other.store)) == lines
        for name in ("a1", "a2", "b1", "b2"):
            assert other.seen(name) == loader.seen(name)

    def test_of_a_set_has_what_crosswalks_state_of_it(self, loader: Loader, other: Loader):
        lines = list(export_lines(loader.store, [f"{uuid('b00')}_grade-03"]))
        relations = [json.loads(line) for line in lines if "_crosswalk" in line]
        assert relations == [
            {"_crosswalk": "walk.csv", "title": "walk.csv", "from": uuid("a1"),
             "relation": "exactMatchOf", "to": uuid("b1")},
        ]  # fmt: skip
        other.table("\n".join(lines), "b.jsonl")
        assert other.seen("b1")[0] == ("exactMatchOf", uuid("a1"), "walk.csv", False)

    def test_of_a_set_takes_nothing_from_the_crosswalks_that_are_there(self, loader: Loader):
        before = list(export_lines(loader.store))
        for set_id in (f"{uuid('a00')}_grade-03", f"{uuid('b00')}_grade-03"):
            lines = "\n".join(export_lines(loader.store, [set_id]))
            for options in ({}, {"replace": True}):
                report = loader.table(lines, "part.jsonl", **options)
                assert (report.written, report.notes) == (0, {})
        assert list(export_lines(loader.store)) == before

    def test_restores_what_a_removal_took(self, loader: Loader):
        before = list(export_lines(loader.store))
        set_id = f"{uuid('a00')}_grade-03"
        kept = "\n".join(export_lines(loader.store, [set_id]))
        remove_sets(loader.store, [set_id])
        loader.table(kept, "kept.jsonl")
        assert list(export_lines(loader.store)) == before


def test_only_so_many_are_returned(loader: Loader):
    items = [f"a{number}" for number in range(10, 40)]
    loader.packages(
        package("a", " ".join(items), *((items[0], "precedes", each) for each in items))
    )
    (record,) = loader.store.fetch([uuid("a10")])
    assert [len(loader.store.relations([record], limit=limit)[0]) for limit in (5, 50)] == [5, 29]


def standard(id_: str, code: str, jurisdiction: str = "J") -> StandardRecord:
    return StandardRecord(
        id=id_,
        content=f"Depth 0: {code}",
        standard_set_id=f"S-{jurisdiction}",
        standard_set_title="S",
        subject="English",
        jurisdiction_id=jurisdiction,
        jurisdiction_title=jurisdiction,
        statement_notation=code,
    )
