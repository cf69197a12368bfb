"""``standards-mcp data`` with crosswalks: imported, listed, removed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from standards_mcp import cli
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.relations import Crosswalk, CrosswalkLinks, link

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(data: Run, tmp_path: Path) -> Run:
    """Return a function that runs a data command over an embedded index of four standards."""
    with closing(LocalStore(tmp_path / "catalog", "none")) as store:
        store.write(())  # without the starter set
    rows = "".join(f"{code},Learn {code}.,{code[0]}\n" for code in ("A.1", "A.2", "B.1", "B.2"))
    (tmp_path / "own.csv").write_text(f"code,text,set_title\n{rows}")
    assert data("import", str(tmp_path / "own.csv"))[0] == 0
    return data


def walk(folder: Path, *rows: str) -> str:
    path = folder / "walk.csv"
    path.write_text("\n".join(("from,to,relation", *rows)), encoding="utf-8")
    return str(path)


def test_a_crosswalk_is_imported_listed_and_removed(run: Run, tmp_path: Path):
    code, out, _ = run("import", walk(tmp_path, "A.1,B.1,same", "A.2,B.2,related"))
    assert (code, "Took 2 relations between standards." in out) == (0, True)
    assert run("crosswalks")[1].split() == ["2", "walk.csv"]
    found: Any = json.loads(run("crosswalks", "--json")[1])
    assert found == [{"id": "walk.csv", "title": "walk.csv", "relations": 2}]
    dry = json.loads(run("remove", "walk.csv", "--dry-run", "--json")[1])
    assert dry == {"deleted": 0, "left": 0, "relations": 2, "dry_run": True}
    assert run("remove", "WALK.csv", "--yes")[1].startswith("Deleted 2 relations. To get")
    assert "No crosswalks are loaded" in run("crosswalks")[1]
    assert "no set 'walk.csv'" in run("remove", "walk.csv", "--yes")[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_removal_is_done_if_the_answer_is_yes(run: Run, monkeypatch: pytest.MonkeyPatch):
    for answer in ("n\n", "\n", "", "y\n"):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        code, out, err = run("remove", "A")
        agreed = answer == "y\n"
        assert "Would delete 2 records; 0 stay in other sets. To keep a copy, run" in err
        assert (code in (1, cli.INTERRUPTED), out.startswith("Deleted 2")) == (not agreed, agreed)
        left = [each["title"] for each in json.loads(run("sets", "--json")[1])]
        assert left == (["B"] if agreed else ["A", "B"])


def test_of_which_nothing_is_taken_fails(run: Run, tmp_path: Path):
    code, out, _ = run("import", walk(tmp_path, "A.1,B.9,same"))
    assert code == 1
    assert out.startswith("Nothing was read: ")


def test_what_crosswalks_say_of_a_set_is_counted_with_it(run: Run, tmp_path: Path):
    run("import", walk(tmp_path, "A.1,B.1,same", "A.1,A.2,precedes"))
    dry = run("remove", "B", "--dry-run")[1]
    assert "Would delete 2 records and 1 relation; 0 stay" in dry
    assert "Deleted 2 records and 1 relation; 0 stay" in run("remove", "B", "--yes")[1]
    assert run("crosswalks")[1].split() == ["1", "walk.csv"]
    assert "Would delete 2 records and 1 relation; 0" in run("remove", "A", "--dry-run")[1]


def test_crosswalks_of_one_title_are_told_apart_by_their_ids(run: Run, tmp_path: Path):
    store = LocalStore(tmp_path / "catalog", "none")
    links = [link("id:1", "isPeerOf", "id:2")]
    walks = [CrosswalkLinks(Crosswalk(id_, "Both"), links) for id_ in ("guid-1", "guid-2")]
    store.write((), (), None, walks)
    store.close()
    assert run("crosswalks")[1].split() == ["1", "Both", "guid-1", "1", "Both", "guid-2"]
    code, _, err = run("remove", "both", "--yes")
    assert code == 2
    assert "2 crosswalks have the title 'both'; give one of their ids: guid-1, guid-2" in err
    assert run("remove", "guid-1", "--yes")[0] == 0
    assert run("crosswalks")[1].split() == ["1", "Both", "guid-2"]


def share_names(folder: Path) -> None:
    """Give a set and a crosswalk of another source one title, and others one id."""
    store = LocalStore(folder / "catalog", "none")
    links = [link("id:1", "isPeerOf", "id:2")]
    (_, second) = (each.id for each in store.sets())
    walks = (Crosswalk("guid", "a"), Crosswalk(second, "C"))
    store.write((), (), None, [CrosswalkLinks(each, links) for each in walks])
    store.close()


def test_what_is_a_set_and_a_crosswalk_is_removed_only_as_the_one_that_is_said(
    run: Run, tmp_path: Path
):
    share_names(tmp_path)
    code, _, err = run("remove", "A", "--yes")
    assert code == 2
    assert "'A' is a set, and also the crosswalk with the id guid; add --crosswalk for the" in err
    assert "no crosswalk 'B'" in run("remove", "B", "--crosswalk", "--yes")[2]
    assert run("remove", "A", "--crosswalk", "--yes")[1].startswith("Deleted 1 relation. To get")
    ((same_id, place),) = (
        (walk["id"], each["jurisdiction_title"])
        for walk in json.loads(run("crosswalks", "--json")[1])
        for each in json.loads(run("sets", "--json")[1])
        if walk["id"] == each["id"]
    )
    for wrong in (("remove", same_id), ("remove", "--crosswalk"),
                  ("remove", same_id, "--crosswalk", "--jurisdiction", "Ohio")):  # fmt: skip
        assert run(*wrong, "--yes")[0] == 2
    assert "Deleted 2 records" in run("remove", same_id, "--jurisdiction", place, "--yes")[1]
    assert "Deleted 1 relation." in run("remove", same_id, "--crosswalk", "--yes")[1]


def test_a_table_that_may_be_a_crosswalk_is_told_what_its_columns_are_called(
    run: Run, tmp_path: Path
):
    path = tmp_path / "cw.csv"
    path.write_text("Florida Standard,Common Core Standard,Relationship\nA.1,B.1,same\n")
    code, out, _ = run("import", str(path))
    assert code == 1
    assert "no column named text" in out
    assert "if it is a crosswalk, call its columns from, to and relation" in out
    path.write_text("code,grade\nA.1,3\n")
    assert "crosswalk" not in run("import", str(path))[1]
