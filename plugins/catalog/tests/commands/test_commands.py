from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.memory_store import MemoryStore
from support.waiting import wait_until

from standards_mcp.cli import run as run_program
from standards_mcp.config.loading import load_settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.commands.importing import import_command
from standards_mcp_catalog.commands.removing import remove
from standards_mcp_catalog.commands.sets import export, sets
from standards_mcp_catalog.commands.workplace import ProgressLine, Workplace
from standards_mcp_catalog.importing import services
from standards_mcp_catalog.importing.formats.tabular import template
from standards_mcp_catalog.importing.report import Report
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_catalog.starter import starter_records


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def run(store):
    def run(command: Any, *arguments: str) -> Result:
        plugin = PluginInfo(name="catalog", load=lambda: CatalogPlugin)
        host = Host(load_settings(), installed=[plugin], remembers=False)
        host.load()
        provider: Any = host.manager.records["catalog"].plugin
        workplace = Workplace(
            provider.settings, lambda: host.service(Catalog), lambda: host.state_dir
        )
        workplace.__dict__["embedded"] = SimpleNamespace(store=store)
        return CliRunner().invoke(command, arguments, obj=workplace)

    return run


@pytest.fixture
def table():
    Path("own.csv").write_text(template(), encoding="utf-8")
    return "own.csv"


def test_a_table_is_imported_and_the_report_printed(run, store, table):
    report = json.loads(run(import_command, table, "--json", "--dry-run").stdout)
    assert (report["new"], report["dry_run"], store.contents) == (3, True, {})
    result = run(import_command, table)
    assert result.exit_code == 0, result.output
    assert "Wrote 3 (3 new, 0 changed)" in result.output
    assert len(store.contents) == 3


def test_filters_and_flags_reach_the_import(run, store, table):
    assert run(import_command, table, "--grade", "2", "--subject", "math").exit_code == 0
    assert len(store.contents) == 1
    two = ("--jurisdiction", "Elm", "--jurisdiction", "Oak")
    assert run(import_command, table, *two).exit_code == 0
    assert len(store.contents) == 1


def test_an_import_that_takes_nothing_fails_and_leaves_what_is_loaded(run, store, table, tmp_path):
    assert run(import_command, table).exit_code == 0
    before = dict(store.contents)
    (tmp_path / "bad.jsonl").write_text('{"_id": "A"}\n', encoding="utf-8")
    (tmp_path / "bad.csv").write_text("code,text\n,no code\n", encoding="utf-8")
    for name in ("bad.jsonl", "bad.csv"):
        for flags in ((), ("--dry-run",), ("--replace",)):
            assert run(import_command, str(tmp_path / name), *flags).exit_code == 1
    assert store.contents == before
    assert run(import_command, table).exit_code == 0  # nothing new, and nothing wrong


def test_nothing_is_replaced_while_a_file_cannot_be_read(run, store, table, tmp_path):
    assert run(import_command, table).exit_code == 0
    before = dict(store.contents)
    lines = Path(table).read_text(encoding="utf-8").splitlines(keepends=True)
    Path(table).write_text("".join(lines[:-1]), encoding="utf-8")
    broken = tmp_path / "rest.csv.gz"
    broken.write_bytes(b"\x1f\x8b")
    result = run(import_command, table, str(broken), "--replace")
    assert "set not replaced" in result.output
    assert store.contents.keys() == before.keys()
    assert run(import_command, table, "--replace").exit_code == 0
    assert len(store.contents) == len(before) - 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("own.csv", "--grade", "99"), "--grade: '99' is not a grade."),
        ((), ""),
        (("--from-api", "case"), ""),
    ],
    ids=["no grade", "nothing to import", "a CASE service without an address"],
)
def test_an_import_of_what_cannot_be_is_bad_usage(run, store, table, arguments, told):
    del table
    refused = run(import_command, *arguments)
    assert (refused.exit_code, store.contents) == (2, {})
    assert told in refused.output


def test_a_strict_import_prints_its_report_and_fails(run, store, table, tmp_path):
    result = run(import_command, table, str(tmp_path / "missing.csv"), "--strict")
    assert result.exit_code == 1
    assert "Skipped: cannot be read, 1 time\n" in result.output
    assert store.contents == {}


@pytest.mark.parametrize("api", ["csp", "case"])
def test_an_api_out_of_reach_is_told(run, api):
    result = run(import_command, "--from-api", api, "http://[nowhere", "--refresh")
    assert result.exit_code == 1
    assert "cannot be read" in result.output


@pytest.mark.parametrize(
    ("options", "sent"), [((), "from-file"), (("--api-key", "given"), "given")]
)
def test_the_key_of_an_api_may_stand_in_the_env_file(run, monkeypatch, options, sent):
    real, keys = services.csp_web, list[str]()

    def csp_web(key: str, cache: Any) -> Any:
        keys.append(key)
        return real(key, cache)

    monkeypatch.setattr(services, "csp_web", csp_web)
    Path(".env").write_text("CSP_API_KEY=from-file\n", encoding="utf-8")
    run(import_command, "--from-api", "csp", "http://csp.example.invalid", "--refresh", *options)
    assert keys == [sent]


@pytest.mark.parametrize("name", ["my-district-mathematics-grade-1", "grade 1"])
def test_a_set_is_removed_by_id_or_title(run, store, table, name):
    assert "data import --help" in run(sets).output
    run(import_command, table)
    assert "my-district-mathematics-grade-1" in run(sets).output
    assert "Would delete 3" in run(remove, name, "--dry-run").output
    assert json.loads(run(remove, name, "--json", "--yes").stdout)["deleted"] == 3
    assert store.contents == {}


def test_the_starter_set_is_removed_and_comes_back_by_its_name(run, store, table):
    run(import_command, table)
    own = set(store.contents)
    store.contents |= {record.id: record for record in starter_records()}
    assert f"Deleted {len(starter_records()):,} " in run(remove, "starter", "--yes").output
    assert set(store.contents) == own
    store.load_seed = starter_records
    dry = json.loads(run(import_command, "starter", "--dry-run", "--json").stdout)
    assert (dry["new"], set(store.contents)) == (len(starter_records()), own)
    assert run(import_command, "starter", "--subject", "math").exit_code == 0
    assert {record.subject for record in store.contents.values()} == {"Mathematics"}


def test_an_export_is_read_back(run, store, table, tmp_path):
    run(import_command, table)
    before = dict(store.contents)
    path = tmp_path / "out.jsonl"
    printed = run(export, "--set", "Grade 1")
    assert run(export, "--output", str(path)).exit_code == 0
    assert path.read_text("utf-8") == printed.stdout
    store.contents.clear()
    assert run(import_command, str(path)).exit_code == 0
    assert store.contents == before


def test_progress_is_one_line_while_reading_and_while_embedding(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("standards_mcp_catalog.commands.workplace._REDRAW_SECONDS", -1)
    with ProgressLine() as progress:
        progress.fetched(2, 5)
        progress.read(Report(read=1_200, documents=2))
        progress(0, 300)
        progress(300, 300)
    told = capsys.readouterr()
    assert "Read 1,200 records in 2 documents (2 of 5)" in told.err
    assert "Embedding: 300 of 300" in told.err
    assert told.out == ""


def test_progress_is_a_line_now_and_then_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("standards_mcp.commands.PAUSE", 0.01)
    monkeypatch.setattr("standards_mcp_catalog.commands.workplace._REDRAW_SECONDS", -1)
    told = []

    def tells(text):
        told.append(capsys.readouterr().err)
        return text in "".join(told)

    with ProgressLine() as progress:
        wait_until(lambda: tells("Working, "))
        progress.read(Report(read=1_200, documents=1))
        wait_until(lambda: tells("Read 1,200 records in 1 documents"))
        progress(100, 200)
        wait_until(lambda: tells("Embedding: 100 of 200, "))
    assert "\r" not in "".join(told)


class TestStatus:
    """``data status`` of catalogs in good and in bad condition."""

    @pytest.fixture
    def status(self, tmp_path, capsys):
        def status(folder: str = "catalog") -> tuple[int, Any, str]:
            options = ("plugins.catalog.backend=local", f"plugins.catalog.path={tmp_path / folder}")
            settings = [part for option in options for part in ("--set", option)]
            code = run_program([*settings, "data", "status", "--json"])
            out, err = capsys.readouterr()
            return code, json.loads(out or "null"), err

        return status

    def test_says_what_is_damaged_and_how_it_is_repaired(self, status, tmp_path, planted):
        journals = shutil.ignore_patterns("*-wal", "*-shm")
        shutil.copytree(planted, tmp_path / "catalog", ignore=journals)
        code, facts, _ = status()
        assert (code, facts["records"], facts["search"]) == (0, len(starter_records()), "ok")
        (columns,) = (tmp_path / "catalog" / "index").glob("g*/columns.npz")
        columns.write_bytes(bytes(columns.stat().st_size))
        code, facts, _ = status()
        assert (code, facts["records"]) == (0, len(starter_records()))
        assert "columns.npz is damaged; run `standards-mcp data build`" in facts["search"]

    def test_is_one_line_where_there_can_be_no_catalog(self, status, tmp_path):
        (tmp_path / "file").write_text("in the way")
        code, facts, err = status("file")
        assert (code, facts) == (2, None)
        assert "[plugins.catalog] path: " in err
        assert "file is no folder; correct the path" in err
        assert err.count("\n") == 1


def test_nothing_is_removed_in_a_script_without_yes(run, store, table):
    run(import_command, table)
    for flags in ((), ("--json",)):
        refused = run(remove, "Grade 1", *flags)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "Would delete 3 records; 0 stay in other sets. To keep a copy" in refused.stderr
        assert "Nothing was changed. Run again with --yes" in refused.stderr
    assert "no set 'x'; `standards-mcp data sets` lists them" in run(remove, "x").output
    assert len(store.contents) == 3


def test_a_removal_says_how_to_keep_a_copy_and_how_to_get_it_back(run, table):
    run(import_command, table)
    dry = run(remove, "--jurisdiction", "my district", "--dry-run").output
    assert "`standards-mcp data export --jurisdiction 'my district' --output FILE`" in dry
    by_title = run(remove, "Grade 1", "--dry-run").output
    assert "data export --set my-district-mathematics-grade-1 --output FILE" in by_title
    assert "import its source or an export" in run(remove, "Grade 1", "--yes").output
    assert run(remove, "starter").output == "Deleted 0 records; 0 stay in other sets.\n"
