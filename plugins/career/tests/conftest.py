"""Databases, ids and a clock for the tests: the same ids and times in each run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from standards_mcp.cli import run as run_program
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.primitives import CountingIds
from standards_mcp_career.records import Interaction, Opportunity
from standards_mcp_career.store.database import Store
from standards_mcp_career.store.migrations import open_store
from standards_mcp_career.store.repositories import upsert_interactions, upsert_opportunities


class Done(NamedTuple):
    """What a command has printed."""

    stdout: str
    stderr: str


Run = Callable[..., Done]


def clock() -> str:
    return "2026-01-01T00:00:00Z"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "career.db"


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, db: Path) -> Iterator[Store]:
    """Open a new database in memory, and one in a file."""
    opened = open_store(db if request.param == "file" else None)
    yield opened
    opened.close()


@pytest.fixture
def ids() -> CountingIds:
    return CountingIds()


@pytest.fixture
def audit(store: Store, ids: CountingIds) -> AuditLog:
    return AuditLog(store, ids, clock)


@pytest.fixture
def add_interaction() -> Callable[..., None]:
    """Return a function that stores an interaction with its opportunity."""

    def add(store: Store, interaction_id: str, state: int = 0, index: int = 0) -> None:
        with store.writing() as connection:
            opportunity = Opportunity(
                opportunity_id="o-1", company="Reed Works", role_title="Engineer", source=""
            )
            upsert_opportunities(connection, [opportunity])
            record = Interaction(interaction_id, "o-1", state, index)
            upsert_interactions(connection, [record])

    return add


@pytest.fixture
def installed(install: Callable[..., Path]) -> None:
    """Let processes that tests start find the plugin."""
    source = "from standards_mcp_career.plugin import CareerPlugin as CareerPlugin"
    install("career", source, version="0.1.0")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs ``standards-mcp`` with a database of its own."""
    file = tmp_path / "config.toml"
    text = f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n[plugins.career]\n"
    text += f"db = {json.dumps(str(tmp_path / 'career.db'))}\n"
    file.write_text(f"{text}resume_roots = [{json.dumps(str(tmp_path))}]\n", "utf-8")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*arguments: str | Path, status: int = 0) -> Done:
        code = run_program(["--config", str(file), *map(str, arguments)])
        done = Done(*capfd.readouterr())
        assert code == status, done.stderr
        return done

    return run


@pytest.fixture
def run_process(run: Run, tmp_path: Path) -> Run:
    """Return a function that does the same in a process of its own."""
    del run  # which has written the configuration

    def run_one(*arguments: str | Path, status: int = 0) -> Done:
        command = [sys.executable, "-m", "standards_mcp", "--config", "config.toml"]
        done = subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        assert done.returncode == status, done.stderr
        return Done(done.stdout, done.stderr)

    return run_one
