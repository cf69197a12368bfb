"""``standards-mcp data`` with crosswalks: imported, listed, removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from standards_mcp import cli
from standards_mcp.catalog.local.store import LocalStore
from standards_mcp.catalog.relations import Crosswalk, link

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a data command over an embedded index of four standards."""
    path = tmp_path / "catalog"
    text = f'[catalog]\npath = "{path.as_posix()}"\n[catalog.local]\nmodel = "none"\n'
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")
    LocalStore(path, "none").write(())  # without the starter set
    rows = "".join(f"{code},Learn {code}.,{code[0]}\n" for code in ("A.1", "A.2", "B.1", "B.2"))
    (tmp_path / "own.csv").write_text(f"code,text,set_title\n{rows}")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["data", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    assert run("import", str(tmp_path / "own.csv"))[0] == 0
    return run


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
    assert run("remove", "WALK.csv")[1] == "Deleted 2 relations.\n"
    assert "No crosswalks are loaded" in run("crosswalks")[1]
    assert "no set 'walk.csv'" in run("remove", "walk.csv")[2]


def test_of_which_nothing_is_taken_fails(run: Run, tmp_path: Path):
    code, out, _ = run("import", walk(tmp_path, "A.1,B.9,same", "A.1,B.1,unheard of"))
    assert code == 1
    assert "Took 0 relations" in out
    assert "line 2: unknown code ('B.9'" in out
    assert "line 3: unknown relation ('unheard of'; understood are exactMatchOf," in out
    code, out, _ = run("import", walk(tmp_path, "A.1,B.9,same"))
    assert code == 1
    assert out.startswith("Nothing was read: ")


def test_what_crosswalks_say_of_a_set_is_counted_with_it(run: Run, tmp_path: Path):
    run("import", walk(tmp_path, "A.1,B.1,same", "A.1,A.2,precedes"))
    dry = run("remove", "B", "--dry-run")[1]
    assert "Would delete 2 records and 1 relation; 0 stay" in dry
    assert "Deleted 2 records and 1 relation; 0 stay" in run("remove", "B")[1]
    assert run("crosswalks")[1].split() == ["1", "walk.csv"]
    assert "Would delete 2 records and 1 relation; 0" in run("remove", "A", "--dry-run")[1]


def test_crosswalks_of_one_title_are_told_apart_by_their_ids(run: Run, tmp_path: Path):
    store = LocalStore(tmp_path / "catalog", "none")
    links = [link("id:1", "isPeerOf", "id:2")]
    walks = [(Crosswalk(id_, "Both"), links) for id_ in ("guid-1", "guid-2")]
    store.write((), (), None, walks)
    store.close()
    assert run("crosswalks")[1].split() == ["1", "Both", "guid-1", "1", "Both", "guid-2"]
    code, _, err = run("remove", "both")
    assert code == 2
    assert "2 crosswalks have the title 'both'; give one of their ids: guid-1, guid-2" in err
    assert run("remove", "guid-1")[0] == 0
    assert run("crosswalks")[1].split() == ["1", "Both", "guid-2"]
