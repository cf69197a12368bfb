"""Names of jurisdictions and sets, given at an import or later, in a real catalog."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.records import record

from standards_mcp_catalog.local.store import LocalStore

Run = Callable[..., tuple[int, str, str]]
OWN = {"jurisdiction_title": "Florida"}


@pytest.fixture
def run(data: Run, tmp_path: Path) -> Run:
    with closing(LocalStore(tmp_path / "catalog", "none")) as store:
        store.upsert([record(1, "Count.", jurisdiction_title="Other")])  # no starter set then
    return data


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[LocalStore]:
    """What a server that runs has open."""
    with closing(LocalStore(tmp_path / "catalog", "none")) as store:
        yield store


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., str]:
    def package(creator: str = "CPALMS", name: str = "best", items: int = 2) -> str:
        document = {"identifier": f"doc-{name}", "title": "Reading", "creator": creator}
        content = {
            "CFDocument": {**document, "subject": ["English"]},
            "CFItems": [
                {
                    "identifier": f"{name}-{number}",
                    "fullStatement": f"Learners read poem {number}.",
                    "humanCodingScheme": f"ELA.3.R.{number}",
                    "educationLevel": ["03"],
                }
                for number in range(items)
            ],
        }
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    return package


def titles(store: LocalStore) -> set[str]:
    return {each.jurisdiction_title for each in store.sets()}


def test_an_import_names_the_jurisdiction_whatever_the_source_says(run, package, serving):
    code, out, _ = run("import", package(), "--jurisdiction", "fl")
    named = "--jurisdiction: jurisdiction renamed ('CPALMS' to 'Florida')"
    assert (code, named in out) == (0, True)
    assert titles(serving) & {"Florida", "CPALMS"} == {"Florida"}
    code, out, _ = run("import", package(items=3))
    assert (code, "(1 new, 0 changed)" in out) == (0, True)
    assert "jurisdiction named as before ('Florida' in place of 'CPALMS')" in out
    assert "CPALMS" not in titles(serving)


def test_of_several_jurisdictions_only_the_named_one_is_taken(run, package, serving):
    sources = package("CPALMS", "best"), package("Elm District", "elm")
    code, _, err = run("import", *sources, "--jurisdiction", "Ohio")
    assert code == 1
    assert "'Ohio' is not one of the jurisdictions that were read" in err
    assert "'CPALMS' and 'Elm District'" in err
    assert "Elm District" not in titles(serving)
    code, out, _ = run("import", *sources, "--jurisdiction", "Florida", "--json")
    assert (code, json.loads(out)["filtered"]) == (0, 2)
    assert {"CPALMS"} == titles(serving) & {"CPALMS", "Elm District", "Florida"}


def test_tables_without_a_jurisdiction_stay_apart_by_the_name_given(run, tmp_path, serving):
    table = tmp_path / "own.csv"
    table.write_text("code,text,subject\n1,Count things.,Math\n", encoding="utf-8")
    for name in ("Elm", "Oak"):
        code, out, _ = run("import", str(table), "--jurisdiction", name)
        assert (code, "(1 new, 0 changed)" in out, "Unspecified" in out) == (0, True, False)
    assert {"Elm", "Oak"} < titles(serving)
    assert [each.title for each in serving.sets() if each.jurisdiction_title == "Elm"] == ["Math"]


def test_a_new_name_is_everywhere_at_once_also_in_a_server_that_runs(run, package, serving):
    assert run("import", package())[0] == 0
    assert serving.search("read a poem", 2, {"jurisdiction_title": "CPALMS"}).hits
    code, out, _ = run("rename", "--jurisdiction", "Florida", "Sunshine", "--dry-run")
    message = "Would rename the jurisdiction of 1 set to 'Sunshine'; 2 records would change.\n"
    assert (code, out) == (0, message)
    code, out, _ = run("rename", "--jurisdiction", "FL", "Florida", "--json")
    told = {"changed": 2, "sets": 1, "joined": 0, "name": "Florida", "dry_run": False}
    assert json.loads(out) == told
    assert len(serving.search("read a poem", 5, OWN).hits) == 2
    assert not serving.search("read a poem", 2, {"jurisdiction_title": "CPALMS"}).hits
    assert "CPALMS" not in serving.values("jurisdiction_title").counts
    assert serving.facets().jurisdictions["Florida"] == 2
    assert serving.find("ELA.3.R.1")[0].jurisdiction_title == "Florida"
    assert len(serving.select({**OWN, "jurisdiction_id": "florida"}, 9)) == 2
    assert {each["_id"] for each in exported(run, "florida")} == {"best-0", "best-1"}


def exported(run: Run, jurisdiction: str) -> list[dict[str, str]]:
    lines = run("export", "--jurisdiction", jurisdiction)[1].splitlines()
    return [json.loads(line) for line in lines]


def test_a_jurisdiction_that_gets_the_name_of_another_becomes_one_with_it(run, package, serving):
    run("import", package("Florida", "one"), package("CPALMS", "two"))
    code, _, err = run("remove", "--jurisdiction", "FL", "--yes")
    assert (code, "'FL' matches 'CPALMS' and 'Florida'; use one" in err) == (2, True)
    rename = ("rename", "--jurisdiction", "CPALMS", "Florida")
    code, out, _ = run(*rename, "--dry-run")
    message = "Would rename the jurisdiction of 1 set to 'Florida', which has 1 other set; "
    assert (code, out) == (0, message + "2 records would change.\n")
    assert json.loads(run(*rename, "--json")[1])["joined"] == 1
    ids = {each.jurisdiction_id for each in serving.sets() if each.jurisdiction_title == "Florida"}
    assert ids == {"florida"}


def test_a_renamed_set_keeps_its_title_when_it_is_read_again(run, package, serving):
    run("import", package())
    code, out, _ = run("rename", "Reading (Grade 3)", "Third grade")
    assert (code, out) == (0, "Renamed 1 set to 'Third grade'; 2 records changed.\n")
    assert "Third grade" in {each.title for each in serving.sets()}
    out = run("import", package())[1]
    assert "(0 new, 0 changed)" in out
    assert "set named as before ('Third grade' in place of 'Reading (Grade 3)')" in out
    assert run("remove", "third grade", "--jurisdiction", "FL", "--yes")[0] == 0
    for _ in range(2):
        run("import", package())
        assert "Reading (Grade 3)" in {each.title for each in serving.sets()}


def test_sets_are_listed_and_removed_by_jurisdiction(run, package, serving):
    run("import", package(), package("Elm District", "elm"))
    listed = json.loads(run("sets", "--jurisdiction", "Florida", "--json")[1])
    assert [each["jurisdiction_title"] for each in listed] == ["CPALMS"]
    code, out, _ = run("remove", "--jurisdiction", "florida", "--yes")
    assert (code, out.startswith("Deleted 2 records; 0 stay in other sets. To get")) == (0, True)
    assert {"CPALMS", "Elm District"} & titles(serving) == {"Elm District"}


def test_what_is_meant_is_told_where_a_name_is_no_set(run, package):
    run("import", package(), package("Elm District", "elm"), package("Elm Valley", "valley"))
    places = "No standards of Ohio are loaded. There are: "
    elm = "doc-elm_grade-03  Reading (Grade 3) (Elm District, English)"
    for command, code, told in (
        ("remove --yes Florida", 1, "is a jurisdiction with 1 set; write `--jurisdiction Florida`"),
        ("remove --yes Ohio", 1, places),
        ("remove --yes Reading", 1, elm),
        ("remove --yes --jurisdiction Elm", 1, "Did you mean 'Elm District' or 'Elm Valley'?"),
        ("export --jurisdiction Elm", 1, "'Elm' may be 'Elm District' or 'Elm Valley'"),
        ("export --jurisdiction Ohio", 1, places),
    ):
        refused = run(*command.split())
        assert (refused[0], told in refused[2]) == (code, True), command
    code, _, err = run("remove", "reading (grade 3)")
    assert (code, elm in err) == (2, True)
    assert run("remove", "reading (grade 3)", "--jurisdiction", "Elm District", "--dry-run")[0] == 0


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., str]:
    def table(jurisdiction: str, *rows: str, name: str = "own") -> str:
        path = tmp_path / f"{name}.csv"
        lines = ["id,text,subject,grade,set,jurisdiction"]
        for row in rows:
            number, subject, grade = row.split(",")
            lines.append(f"{name}-{number},Count {number}.,{subject},{grade},{name},{jurisdiction}")
        path.write_text("\n".join(lines), encoding="utf-8")
        return str(path)

    return table


def test_the_standards_of_another_place_are_not_called_so(run, table, serving):
    source = table("Florida", "1,Math,3")
    code, _, err = run("import", source, "--jurisdiction", "Ohio")
    message = "'Ohio' does not fit the records that were read: they are of 'Florida'"
    assert (code, message in err) == (1, True)
    assert "data rename --jurisdiction OLD NEW" in err
    assert not {"Florida", "Ohio"} & titles(serving)


def test_a_name_given_to_some_records_of_a_set_is_that_of_all(run, table):
    source = table("Elm", "1,Math,3", "2,Math,4")
    run("import", source)
    code, out, _ = run("import", source, "--jurisdiction", "Willow", "--grade", "3")
    assert (code, "(1 stored record of the same sets)" in out) == (0, True)
    assert {each["_id"] for each in exported(run, "Willow")} == {"own-1", "own-2"}


def test_a_district_is_not_removed_or_renamed_by_the_name_of_a_state(run, table, serving):
    name = "Kansas City Public Schools"
    run("import", table(name, "1,Math,3"))
    remove = ("remove", "--yes", "--jurisdiction")
    for command in ((*remove, "KS"), ("rename", "--jurisdiction", "KS", "Oak")):
        code, _, err = run(*command)
        assert (code, "No standards of Kansas are loaded." in err) == (1, True)
        assert f"Did you mean '{name}'?" in err
    assert f'--jurisdiction "{name}"`' in run("remove", "Kansas City", "--yes")[2]
    assert run(*remove, "Kansas City")[0] == 1
    assert run(*remove, name.lower())[0] == 0
    assert name not in titles(serving)


def test_titles_that_differ_in_case_are_one_jurisdiction(run, table, serving):
    run("import", table("Elm City", "1,Math,3"), table("elm city", "2,Math,3", name="two"))
    assert len(exported(run, "ELM CITY")) == 2
    for old, new, left in (
        ("elm city", "ELM CITY", "Elm City"),
        ("Elm City", "elm city", "elm city"),
    ):
        assert run("rename", "--jurisdiction", old, new)[0] == 0
        assert titles(serving) & {"Elm City", "elm city", "ELM CITY"} == {left}


@pytest.mark.parametrize(
    "arguments",
    [("remove",), ("rename", "one"), ("rename", "--jurisdiction", "FL"), ("rename", "a", "b", "c"),
     ("rename", "--jurisdiction", "FL", " "), ("import", "one.csv", "--jurisdiction", "\x01")],
)  # fmt: skip
def test_names_that_are_missing_or_empty_are_bad_usage(run, arguments):
    Path("one.csv").write_text("code,text\n1,Count.\n")
    assert run(*arguments)[0] == 2
