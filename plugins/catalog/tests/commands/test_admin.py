"""The page of the catalog on the admin page: its content, and an import as the service runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from standards_mcp_catalog import open_local
from standards_mcp_catalog.commands.admin import CatalogPage, run_import
from standards_mcp_catalog.errors import CatalogError
from standards_mcp_catalog.settings import CatalogSettings

TABLE = "code,text,jurisdiction,set_title,subject\nA.1,Students tie knots.,Ownland,Knots,Crafts\n"


@pytest.fixture
def settings(own_catalog: Path) -> CatalogSettings:
    return CatalogSettings(path=own_catalog)


def imported(
    settings: CatalogSettings, text: str, told: list[Any] | None = None, **values: str
) -> Any:
    """Import a file as the process of the service does."""
    Path("upload").mkdir(exist_ok=True)
    file = Path("upload/own.csv").absolute()
    file.write_text(text, encoding="utf-8")
    page = CatalogPage(settings, lambda: open_local(settings.path))
    arguments = json.loads(json.dumps(page.importer.arguments(str(file), values)))
    told = [] if told is None else told
    return run_import(arguments, lambda *progress: told.append(progress))


@pytest.mark.anyio
async def test_the_page_has_the_state_and_the_sets(settings: CatalogSettings):
    catalog = open_local(settings.path)
    facts, (table,) = await CatalogPage(settings, lambda: catalog).content()
    await catalog.aclose()
    assert facts["Records"] == "2,420"
    assert "Mathematics 729" in facts["Subjects"]
    assert facts["Index"] == "current"
    assert facts["Indexed records"] == "2,420"
    assert table.title == "Standard sets"
    assert ("NGSS: Grade 1", "Next Generation Science Standards", "Science", "13") in table.rows
    assert all(isinstance(fact, str) for fact in facts.values())


def test_the_page_imports_only_into_the_catalog_that_searches_use(settings: CatalogSettings):
    remote = settings.model_copy(update={"backend": "pinecone"})
    importers = [CatalogPage(table, open_local).importer for table in (settings, remote)]
    assert [importer is None for importer in importers] == [False, True]


def test_an_import_reports_counts_rejected_records_and_progress(settings: CatalogSettings):
    told = list[Any]()
    text = TABLE + "A.2,,Ownland,Knots,Crafts\n"
    message, is_error, counts, lists = imported(settings, text, told)
    assert (message, is_error) == ("1 record written.", False)
    assert counts == {"Read": 2, "Records added": 1, "Skipped": 1}
    assert lists["Skipped, the first 20 of each reason"] == ["own.csv: line 3 (A.2): no text"]
    assert told[0][0] == "Opening the catalog"
    assert ("Reading records", 2, 0) in told
    assert told[-1] == ("Embedding and indexing new texts", 1, 1)
    assert imported(settings, TABLE)[2] == {"Read": 1, "Unchanged": 1}


def test_options_and_refusals_are_those_of_the_command(settings: CatalogSettings):
    message, is_error, counts, _ = imported(settings, TABLE, dry_run="on")
    assert (message, is_error) == ("1 record would be written.", False)
    assert counts["Records would be added"] == 1
    skipping = TABLE + "A.2,,Ownland,Knots,Crafts\n"
    message, is_error, *_ = imported(settings, skipping, strict="on")
    assert is_error
    assert message.startswith("nothing was imported, because something had to be skipped")
    assert imported(settings, TABLE, jurisdiction="Upland")[0] == "1 record written."
    stored = open_local(settings.path).store
    assert "Upland" in {item.jurisdiction_title for item in stored.sets()}
    stored.close()
    message, is_error, _, lists = imported(settings, "<html>no table</html>")
    assert is_error
    assert message.startswith("Nothing could be read, and nothing is changed.")
    assert any(
        "own.csv" in line and "/" not in line.split(":")[0]
        for line in lists["Skipped, the first 20 of each reason"]
    )


def test_addresses_of_the_network_of_the_service_are_refused(settings: CatalogSettings):
    page = CatalogPage(settings, lambda: open_local(settings.path))
    arguments = page.importer.arguments("http://169.254.169.254/latest", {})
    _, is_error, _, lists = run_import(arguments, lambda *_: None)
    assert is_error
    (line,) = lists["Skipped, the first 20 of each reason"]
    assert line.startswith("http://169.254.169.254/latest: ")
    assert "is not a public address" in line


def test_a_damaged_catalog_is_an_error(settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch):
    assert settings.path
    (settings.path / "catalog.sqlite3").write_bytes(b"no database")
    monkeypatch.chdir(settings.path.parent)
    with pytest.raises(CatalogError):
        imported(settings, TABLE)
