from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pinecone_server import KEY, PineconeServer

from standards_mcp import cli
from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.local.store import LocalStore

Run = Callable[..., tuple[int, Any, str]]


def standard(number: int, set_id: str) -> StandardRecord:
    return StandardRecord.from_dict(
        {
            "_id": f"R{number:03}",
            "content": f"Depth 0: Text {number}",
            "standard_set_id": set_id,
            "standard_set_title": set_id.title(),
            "subject": "Mathematics",
            "jurisdiction_id": "somewhere",
            "jurisdiction_title": "Somewhere",
            "statement_notation": f"XQ.{number}",
        }
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PineconeServer]:
    with PineconeServer() as server:
        monkeypatch.setenv("PINECONE_API_KEY", KEY)
        monkeypatch.setenv("PINECONE_CONTROLLER_HOST", server.url)
        yield server


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a data command over an embedded index of two small sets."""
    path = tmp_path / "catalog"
    local = LocalStore(path, "none")
    local.upsert([standard(number, "algebra" if number < 3 else "art") for number in range(5)])
    local.close()
    text = (
        f'[plugins.catalog]\npath = "{path.as_posix()}"\n[plugins.catalog.local]\nmodel = "none"\n'
    )
    Path("standards-mcp.toml").write_text(text, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, Any, str]:
        code = cli.run(["data", *arguments, "--json"])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else None, err

    return run


def test_upload_makes_the_index_and_writes_what_is_missing(
    run: Run, server: PineconeServer
) -> None:
    code, report, _ = run("upload", "--create", "--batch-size", "2")
    assert (code, report["written"], report["complete"]) == (0, 5, True)
    assert [len(each.body) for each in server.sent("upsert")] == [2, 2, 1]
    code, report, _ = run("upload")
    assert (code, report["written"], report["unchanged"]) == (0, 0, 5)


@pytest.mark.usefixtures("server")
def test_an_upload_counts_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, _, err = run("upload", "--create", "--batch-size", "2")
    assert "\r2 records read, 2 written" in err


def test_upload_says_how_to_make_an_index_that_is_missing(run: Run, server: PineconeServer) -> None:
    code, report, err = run("upload")
    assert (code, report) == (1, None)
    assert "data upload --create" in err
    assert not server.indexes


def test_a_dry_run_writes_nothing(run: Run, server: PineconeServer) -> None:
    server.add_index()
    code, report, _ = run("upload", "--dry-run", "--set", "art")
    assert (code, report["new"], report["written"]) == (0, ["R003", "R004"], 0)
    assert not server.sent("upsert")


def test_a_dry_run_says_what_a_new_index_would_get_and_makes_none(
    run: Run, server: PineconeServer
) -> None:
    code, report, _ = run("upload", "--dry-run", "--create")
    assert (code, len(report["new"]), report["written"]) == (0, 5, 0)
    assert not server.indexes


def test_diff_tells_both_sides_apart(run: Run, server: PineconeServer) -> None:
    server.add_index()
    run("upload", "--set", "art")
    run("remove", "Art", "--yes")
    code, report, _ = run("diff")
    assert (code, report["new"]) == (0, ["R000", "R001", "R002"])
    assert report["extra"] == ["R003", "R004"]


def test_a_set_alone_is_uploaded_and_compared_by_its_title_too(
    run: Run, server: PineconeServer
) -> None:
    server.add_index()
    run("upload", "--set", "art")
    code, report, _ = run("upload", "--set", "Algebra")
    assert (code, report["written"], report["complete"]) == (0, 3, True)
    code, report, _ = run("diff", "--set", "algebra")
    assert (code, report["unchanged"], report["extra"]) == (0, 3, [])


@pytest.mark.parametrize("command", ["diff", "upload"])
def test_a_set_that_nobody_has_is_refused_before_anything_is_asked(
    run: Run, server: PineconeServer, command: str
) -> None:
    code, report, err = run(command, "--set", "nonsense")
    assert (code, report) == (1, None)
    assert "no set 'nonsense'; `standards-mcp data sets` lists them" in err
    assert not server.requests


@pytest.mark.usefixtures("run")
def test_people_get_a_table(server: PineconeServer, capfd: pytest.CaptureFixture[str]) -> None:
    server.add_index()
    assert cli.run(["data", "diff"]) == 0
    out = capfd.readouterr().out
    assert "new               5: R000, R001, R002, R003, R004" in out
    assert "only in Pinecone  0" in out


def test_without_a_key_it_says_what_to_set(run: Run) -> None:
    code, report, err = run("diff")
    assert (code, report) == (2, None)
    assert "set PINECONE_API_KEY" in err


def test_status_says_which_backend_and_why(run: Run, server: PineconeServer) -> None:
    server.add_index()
    code, status, _ = run("status")
    assert (code, status["backend"], status["location"]) == (
        0,
        "pinecone",
        "common-core-standards",
    )
    assert status["reason"].endswith("PINECONE_API_KEY is set")


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the configuration name a host where nothing listens."""
    monkeypatch.setenv("PINECONE_API_KEY", KEY)
    monkeypatch.setenv("PINECONE_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("PINECONE_CONTROLLER_HOST", "http://127.0.0.1:9")
    return "127.0.0.1:9"


@pytest.mark.parametrize("command", ["diff", "upload"])
def test_a_pinecone_out_of_reach_is_named_at_once_and_not_waited_for(
    run: Run, nobody: str, command: str
) -> None:
    code, report, err = run(command)
    assert (code, report) == (1, None)
    assert f"cannot be reached at {nobody}" in err
    assert "Check the network" in err
    assert "waiting" not in err
    assert len(err.splitlines()) == 1


def test_status_shows_the_embedded_index_beside_a_pinecone_out_of_reach(
    run: Run, nobody: str
) -> None:
    code, status, _ = run("status")
    assert code == 1
    assert (status["backend"], status["location"]) == ("pinecone", "common-core-standards")
    assert status["reason"].endswith("PINECONE_API_KEY is set")
    assert nobody in status["error"]
    assert status["embedded_index"]["records"] == 5


@pytest.mark.slow
@pytest.mark.usefixtures("nobody")
def test_a_name_that_is_looked_up_for_long_holds_no_command_up(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, enough, asked = socket.getaddrinfo, threading.Event(), list[object]()

    def look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if host != "slow.example.org":
            return real(host, *arguments, **options)
        asked.append(host)
        enough.wait(60)
        raise socket.gaierror("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setenv("PINECONE_HOST", "slow.example.org")
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PINECONE__DEADLINE", "2")
    code, _, err = run("diff")
    enough.set()
    assert (code, asked) == (1, ["slow.example.org"])
    assert "did not answer at slow.example.org within 2 seconds" in err
