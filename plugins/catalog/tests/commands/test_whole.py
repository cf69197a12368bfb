"""From an import to an answer, by the whole command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import data, run


@pytest.mark.slow
def test_data_build_rebuilds_the_index(own_catalog: Path):
    del own_catalog  # only to be the configured one, in place of that of all tests
    outcome = run("data", "build")
    assert outcome.exit_code == 0
    assert "Built the index of" in outcome.stdout


@pytest.mark.smoke
@pytest.mark.slow
def test_imported_standards_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PATH", str(tmp_path / "own"))
    Path("own.csv").write_text(run("data", "template", "csv").stdout, encoding="utf-8")
    for new in (3, 0):
        assert data("data", "import", "own.csv")["new"] == new
    exported = [json.loads(line) for line in run("data", "export").stdout.splitlines()]
    own = {each["_id"]: each for each in exported if each.get("text_status") != "paraphrase"}
    assert len(own) == 3
    *_, last = own.values()
    found = data("lookup", last["statement_notation"])
    assert last["_id"] in {record["_id"] for record in found["results"]}
    assert data("search", last["description"])["results"][0]["_id"] in own
    assert run("data", "remove", "starter", "--yes").exit_code == 0
    status = data("data", "status")
    assert (status["backend"], status["records"]) == ("local", 3)
    assert status["location"] == str(tmp_path / "own")
