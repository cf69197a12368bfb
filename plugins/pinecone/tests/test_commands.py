"""The backend as users see it: the configured catalog, ``data upload``, ``diff`` and ``status``."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from emulator.server import KEY, PineconeServer
from support.records import record
from support.waiting import wait_until

from standards_mcp import cli
from standards_mcp.config.loading import load_settings
from standards_mcp.host import Host
from standards_mcp.loading.health import services_health
from standards_mcp.loading.records import PluginInfo
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.commands import workplace
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_pinecone.client import FallbackCatalog, PineconeClient

Run = Callable[..., tuple[int, Any, str]]
NOBODY = "127.0.0.1:9"
"""An address where nothing listens."""


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINECONE_API_KEY", KEY)


@pytest.fixture
def no_answer(key: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del key
    monkeypatch.setenv("PINECONE_HOST", f"http://{NOBODY}")
    monkeypatch.setenv("PINECONE_CONTROLLER_HOST", f"http://{NOBODY}")


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a data command over an embedded index of two small sets."""
    path = tmp_path / "catalog"
    local = LocalStore(path, "none")
    sets = ["algebra"] * 3 + ["art"] * 2
    local.upsert(
        record(number, "Text", standard_set_id=name, standard_set_title=name.title())
        for number, name in enumerate(sets)
    )
    local.close()
    text = f'[plugins.catalog]\npath = "{path.as_posix()}"\nlocal.model = "none"\n'
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, Any, str]:
        code = cli.run(["data", *arguments, "--json"])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else None, err

    return run


def load(toml: str = "") -> Host:
    Path("standards-mcp.toml").write_text(toml, encoding="utf-8")
    plugin = PluginInfo(name="catalog", load=lambda: CatalogPlugin)
    host = Host(load_settings(), installed=[plugin], remembers=False)
    host.load()
    return host


@pytest.mark.usefixtures("key")
class TestTheConfiguredCatalog:
    def test_is_the_one_in_pinecone_if_there_is_a_key(self):
        host = load()
        assert isinstance(host.service(Catalog), PineconeClient)
        assert KEY not in repr(host.loaded) + repr(host.service(Catalog))
        assert KEY in host.secrets()

    def test_falls_back_to_the_embedded_one_if_that_is_set(self):
        catalog = load(
            '[plugins.catalog.pinecone]\nfallback = "local"\nindex_name = "mine"\ndeadline = 3\n'
        ).service(Catalog)
        assert isinstance(catalog, FallbackCatalog)
        assert catalog.primary.connections.index_name == "mine"
        assert catalog.primary.connections.deadline == 3

    def test_is_named_with_the_reason_in_the_health_of_the_service(
        self, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("PINECONE_HOST", server.url)
        host = load()

        async def health() -> Any:
            try:
                return await services_health(host.manager)
            finally:
                await host.manager.services.aclose()

        facts = anyio.run(health)["Catalog"].facts
        assert (facts["backend"], facts["records"]) == ("pinecone", 0)
        assert facts["reason"].endswith("PINECONE_API_KEY is set")


@pytest.mark.usefixtures("key")
class TestUpload:
    def test_makes_the_index_and_writes_missing_records(
        self, run: Run, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ):
        server.indexes.clear()
        code, report, err = run("upload")
        assert (code, report) == (1, None)
        assert "data upload --create" in err
        code, report, _ = run("upload", "--dry-run", "--create")
        assert (code, len(report["new"]), report["written"]) == (0, 5, 0)
        assert not server.indexes
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setattr(workplace, "_REDRAW_SECONDS", -1)  # every state is shown
        code, report, err = run("upload", "--create", "--batch-size", "2")
        assert (code, report["written"], report["complete"]) == (0, 5, True)
        assert "\r2 records read, 2 written" in err
        assert [len(each.body) for each in server.sent("upsert")] == [2, 2, 1]
        code, report, _ = run("upload")
        assert (code, report["written"], report["unchanged"]) == (0, 0, 5)

    def test_of_one_set_leaves_the_others_alone(self, run: Run, server: PineconeServer):
        code, report, _ = run("upload", "--dry-run", "--set", "art")
        assert (code, report["new"], report["written"]) == (0, ["R003", "R004"], 0)
        assert not server.sent("upsert")
        run("upload", "--set", "art")
        code, report, _ = run("upload", "--set", "Algebra")
        assert (code, report["written"], report["complete"]) == (0, 3, True)
        code, report, _ = run("diff", "--set", "algebra")
        assert (code, report["unchanged"], report["extra"]) == (0, 3, [])


@pytest.mark.usefixtures("key")
class TestDiff:
    def test_tells_both_sides_apart(self, run: Run, server: PineconeServer):
        run("upload", "--set", "art")
        run("remove", "Art", "--yes")
        code, report, _ = run("diff")
        assert (code, report["new"]) == (0, ["R000", "R001", "R002"])
        assert report["extra"] == ["R003", "R004"]
        assert len(server.sent("upsert")) == 1

    @pytest.mark.usefixtures("run", "server")
    def test_prints_a_table(self, capfd: pytest.CaptureFixture[str]):
        assert cli.run(["data", "diff"]) == 0
        out = capfd.readouterr().out
        assert "new               5: R000, R001, R002, R003, R004" in out
        assert "only in Pinecone  0" in out


@pytest.mark.parametrize("command", ["diff", "upload"])
class TestBothCommands:
    @pytest.mark.usefixtures("key")
    def test_refuse_an_unknown_set_before_anything_is_sent(
        self, run: Run, server: PineconeServer, command: str
    ):
        code, report, err = run(command, "--set", "nonsense")
        assert (code, report) == (1, None)
        assert "no set 'nonsense'; `standards-mcp data sets` lists them" in err
        assert not server.requests

    def test_say_what_to_set_if_there_is_no_key(self, run: Run, command: str):
        code, report, err = run(command)
        assert (code, report) == (2, None)
        assert "set PINECONE_API_KEY" in err

    @pytest.mark.usefixtures("no_answer")
    def test_name_a_pinecone_out_of_reach_at_once(self, run: Run, command: str):
        code, report, err = run(command)
        assert (code, report) == (1, None)
        assert f"cannot be reached at {NOBODY}" in err
        assert "Check the network" in err
        assert "waiting" not in err
        assert len(err.splitlines()) == 1


@pytest.mark.usefixtures("key")
def test_status_says_which_backend_and_why(run: Run, server: PineconeServer):
    code, status, _ = run("status")
    assert (code, status["backend"]) == (0, "pinecone")
    assert status["location"] == server.only_index.name
    assert status["reason"].endswith("PINECONE_API_KEY is set")


@pytest.mark.usefixtures("no_answer")
def test_status_shows_the_embedded_index_beside_a_pinecone_out_of_reach(run: Run):
    code, status, _ = run("status")
    assert code == 1
    assert (status["backend"], status["location"]) == ("pinecone", "common-core-standards")
    assert status["reason"].endswith("PINECONE_API_KEY is set")
    assert NOBODY in status["error"]
    assert status["embedded_index"]["records"] == 5


@pytest.mark.slow
@pytest.mark.usefixtures("no_answer")
def test_a_name_that_is_looked_up_for_long_holds_no_command_up(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    real, enough, asked = socket.getaddrinfo, threading.Event(), list[object]()

    def look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if host != "slow.example.org":
            return real(host, *arguments, **options)
        asked.append(host)
        enough.wait(60)
        raise socket.gaierror("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setenv("PINECONE_CONTROLLER_HOST", "slow.example.org")
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PINECONE__DEADLINE", "2")
    code, _, err = run("diff")
    enough.set()
    assert (code, asked) == (1, ["slow.example.org"])
    assert "did not answer at slow.example.org within 2 seconds" in err


@pytest.mark.processes
@pytest.mark.usefixtures("key")
def test_a_process_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, server: PineconeServer):
    records = [record(number, f"Text {number}") for number in range(200)]
    local = LocalStore(tmp_path / "catalog", "none")
    local.upsert(records)
    local.close()
    settings = f'path = "{(tmp_path / "catalog").as_posix()}"\nlocal.model = "none"\n'
    Path("standards-mcp.toml").write_text(f"[plugins.catalog]\n{settings}", encoding="utf-8")
    command = [sys.executable, "-m", "standards_mcp", "data", "upload", "--json"]
    server.fail("upsert", kind="slow", seconds=0.2)
    for attempt in range(2):
        server.requests.clear()
        with subprocess.Popen([*command, "--batch-size", "10"]) as process:
            wait_until(lambda: server.sent("upsert"))
            if attempt:
                wait_until(lambda: len(server.sent("upsert")) > 2)
            process.kill()
        wait_until(lambda: not server.active)  # what was sent before is still written
    written = len(server.records())
    assert 0 < written < len(records)
    server.requests.clear()
    done = subprocess.run(command, capture_output=True, check=True)
    report = json.loads(done.stdout)
    assert (report["complete"], report["changed"]) == (True, [])
    assert len(report["new"]) == sum(len(each.body) for each in server.sent("upsert"))
    assert len(report["new"]) == len(records) - written
    assert set(server.records()) == {each.id for each in records}
