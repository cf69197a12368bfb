"""Databases and servers, ids and a clock: the same ids and times in each run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from standards_mcp.cli import run as run_program
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.records import Interaction, Opportunity
from standards_mcp_career.schema import open_store
from standards_mcp_career.tables import upsert

PASSWORD = "hush/hush"  # noqa: S105
WAIT_SECONDS = 60


def programs() -> Path | None:
    """Return the folder of the newest installed PostgreSQL. Debian keeps it out of PATH."""
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    installed = [folder for folder in folders if (folder / "initdb").exists()]
    if installed:
        return max(installed, key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


class PostgresServer:
    """A server with a socket in a temporary folder, whose users need a password."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._options: dict[str, Any] = {}
        if os.getuid() == 0:  # which PostgreSQL refuses
            import pwd

            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self._options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        access = ("--username=career", "--auth=scram-sha-256", f"--pwfile={password}")
        self._run("initdb", "--no-sync", "--locale=C.UTF-8", "--encoding=UTF8", *access)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        found = programs()
        assert found is not None
        command = [str(found / program), "-D", str(self._data), *arguments]
        with (self._folder / "log").open("ab") as log:
            done = subprocess.run(
                command, stdout=log, stderr=log, cwd="/", check=False, **self._options
            )
        log_text = (self._folder / "log").read_text("utf-8", "replace")
        assert not check or done.returncode == 0, log_text[-5000:]
        return done.returncode

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        # A killed process loses nothing that the system has in its cache, so fsync proves nothing.
        settings = f"-c listen_addresses='' -c unix_socket_directories={self._folder} -c fsync=off"
        end = time.monotonic() + WAIT_SECONDS
        # After a kill, processes of the old server hold its memory for a moment.
        while self._run("pg_ctl", "start", "-w", "-s", "-o", settings, check=False):
            assert time.monotonic() < end
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server, and end its connections."""
        self._run("pg_ctl", "stop", "-m", "immediate", check=False)

    def kill(self) -> None:
        """Kill the server as a crash does."""
        (pid, *_) = (self._data / "postmaster.pid").read_text().split()
        os.kill(int(pid), signal.SIGKILL)
        while Path(f"/proc/{pid}").exists() and not _is_zombie(int(pid)):
            time.sleep(0.01)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://career:hush%2Fhush@/{database}?host={self._folder}"

    def address(self, database: str) -> PostgresAddress:
        return PostgresAddress.parse(self.url(database))

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Return a connection of an administrator."""
        return psycopg.connect(self.address(database).url, autocommit=True)

    def create(self, name: str, options: str = "") -> PostgresAddress:
        """Create an empty database, and return its address."""
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
        return self.address(name)

    def empty(self, name: str) -> PostgresAddress:
        """Drop all tables of a database, and return its address. It is faster than a new one."""
        with self.connect(name) as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        return self.address(name)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Done(NamedTuple):
    """What a command has printed."""

    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "career.db"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    if os.name == "nt" or programs() is None:
        pytest.skip("PostgreSQL is not installed, or this is Windows")
    # The path of a socket must be short, and the server's user must get there.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        server.create("career")
        yield server
        server.stop()


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> PostgresAddress:
    """Return the address of an empty database."""
    return postgres_server.empty("career")


@pytest.fixture
def open_new(request: pytest.FixtureRequest, db: Path) -> Iterator[Callable[[str], Store]]:
    """Return a function that opens a new database: memory, file or postgres."""
    with ExitStack() as stack:

        def open_one(kind: str) -> Store:
            address = kind == "postgres" and request.getfixturevalue("postgres_address")
            place = address or (db if kind == "file" else None)
            return stack.enter_context(closing(open_store(place)))

        yield open_one


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
