"""Databases, ids and a clock for the tests: the same ids and times in each run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from standards_mcp.cli import run as run_program
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.records import Interaction, Opportunity
from standards_mcp_career.schema import open_store
from standards_mcp_career.tables import upsert


class Done(NamedTuple):
    """What a command has printed."""

    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "career.db"


@pytest.fixture
def store() -> Iterator[Store]:
    """Open a new database in memory. The tests in ``store`` open one in a file, too."""
    opened = open_store()
    yield opened
    opened.close()


@pytest.fixture
def audit(store: Store) -> AuditLog:
    numbers = count()
    return AuditLog(
        store, lambda prefix: f"{prefix}-{next(numbers)}", lambda: "2026-01-01T00:00:00Z"
    )


@pytest.fixture
def add_interaction() -> Callable[..., None]:
    """Return a function that stores an interaction with its opportunity."""

    def add(store: Store, interaction_id: str, state: int = 0, index: int = 0) -> None:
        with store.writing() as connection:
            upsert(connection, [Opportunity("o-1", "Reed Works", "Engineer")])
            upsert(connection, [Interaction(interaction_id, "o-1", state, index)])

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


@pytest.fixture
def race() -> Callable[[list[list[str]]], list[str]]:
    """Return a function that starts processes, lets them go on at once, and returns their output.

    Each process prints "ready" and waits for a line.
    """

    def race_all(commands: list[list[str]]) -> list[str]:
        pipe = subprocess.PIPE
        processes = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            for command in commands
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        results = [process.communicate(timeout=90) for process in processes]
        assert [errors for _, errors in results] == [""] * len(commands)
        return [output for output, _ in results]

    return race_all
