"""The plugin as the host sees it: its service, its own check, and its command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from standards_mcp.cli import run
from standards_mcp_catalog.starter import starter_records
from standards_mcp_encoders import minilm


class TestPluginsCheck:
    """What ``standards-mcp plugins check`` says of the plugin."""

    @pytest.fixture
    def check(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
        def check(path: Path = tmp_path / "catalog", model: str = "minilm") -> tuple[str, str]:
            settings = {"path": path, "local.model": model, "backend": "local"}
            pairs = [f"--set=plugins.catalog.{key}={value}" for key, value in settings.items()]
            code = run([*pairs, "plugins", "check", "--json"])
            states = {each["name"]: each["health"] for each in json.loads(capsys.readouterr().out)}
            health = states["catalog"]
            assert code == (1 if health["status"] == "failed" else 0)
            return health["status"], health["message"]

        return check

    def test_tells_what_a_new_catalog_begins_with_and_does_not_fill_it(self, check, tmp_path):
        assert check() == ("ok", "starter set, loaded at the first search")
        assert not (tmp_path / "catalog" / "catalog.sqlite3").exists()

    def test_opens_the_model_and_says_what_is_not_installed(
        self, check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ):
        assert check(model="none")[0] == "degraded"
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        monkeypatch.setattr(minilm, "_SHARED", {})  # another test may have the model open
        status, message = check()
        assert status == "degraded"
        assert "Searched by words only: onnxruntime cannot be imported" in message
        assert "pip install onnxruntime" in message
        monkeypatch.setitem(sys.modules, "fastembed", None)
        status, message = check(model="fastembed:some")
        assert (status, "install 'fastembed<1" in message) == ("failed", True)

    def test_fails_where_the_index_is_damaged(self, check: Callable[..., Any], own_catalog: Path):
        count = len(starter_records())
        assert check(own_catalog) == ("ok", f"{count:,} records in the local catalog")
        (own_catalog / "index" / "current").write_text("elsewhere")
        status, message = check(own_catalog)
        assert status == "failed"
        assert "current is not a pointer to an index" in message


def test_only_the_plugin_of_a_command_is_loaded_for_it(
    capsys: pytest.CaptureFixture[str], starter_catalog: Path
):
    del starter_catalog
    before = set(sys.modules)
    assert run(["data", "sets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    loaded = {name.partition(".")[0] for name in sys.modules.keys() - before}
    assert not loaded & {"standards_mcp_search", "standards_mcp_lookup"}


def test_what_needs_the_catalog_is_disabled_with_it(capsys: pytest.CaptureFixture[str]):
    disabled = "plugin 'catalog' is disabled: [plugins.catalog] enabled = false"
    assert run(["--set", "plugins.catalog.enabled=false", "data", "sets"]) == 1
    error = capsys.readouterr().err
    assert disabled in error
    assert "No such command" not in error
    assert run(["--set", "plugins.catalog.enabled=false", "tools"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count(f"it needs Catalog, and {disabled}") == 2  # search and lookup


@pytest.mark.slow
@pytest.mark.processes
def test_an_isolated_plugin_opens_a_catalog_of_its_own(
    capsys: pytest.CaptureFixture[str], starter_catalog: Path
):
    del starter_catalog
    arguments = json.dumps({"standard_id": "3.NF.A.1"})
    command = ["call", "get_standard_details", "--args", arguments]
    assert run(["--set", "plugins.lookup.isolate=true", *command]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert found["statement_notation"].endswith("3.NF.A.1")


@pytest.mark.slow
@pytest.mark.processes
def test_isolated_it_provides_nothing_and_says_what_to_do(capsys: pytest.CaptureFixture[str]):
    assert run(["--set", "plugins.catalog.isolate=true", "tools"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    reason = "plugin 'catalog' is isolated, so it provides none; take out [plugins.catalog] isolate"
    assert shown.count(reason) == 2
