"""Stores to test on, a loopback Qdrant and encoder, and a host with the plugin before them.

No Qdrant server can be installed from a package registry. The loopback server has the routes that
the plugin uses, as Qdrant's published OpenAPI description has them, and keeps what it gets in the
embedded store of qdrant-client.
"""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import click
import pytest
from mcp import Client
from qdrant_client import QdrantClient, models

from standards_mcp import ToolError
from standards_mcp.cli import run as run_program
from standards_mcp.testing import Connect
from standards_mcp_memory.commands import COLLECTION_COMMANDS, MemoryLocation
from standards_mcp_memory.import_commands import IMPORT_COMMANDS
from standards_mcp_memory.plugin import MemoryPlugin
from standards_mcp_memory.settings import MemorySettings

KEY = "qd-opensesame-0123456789"
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
COMMANDS = {command.name: command for command in (*IMPORT_COMMANDS, *COLLECTION_COMMANDS)}


class Done(NamedTuple):
    """The output of a command."""

    stdout: str
    stderr: str


Run = Callable[..., Done]


class Server(ThreadingHTTPServer):
    """A server that answers what a test says.

    Attributes:
        status: Other than 200: it refuses.
        pause: Seconds before an answer.
        keeps_silent: It closes each connection without an answer.
        drips: Its answers have no end, a space at a time.
        answer: Bytes in place of its answers.
        key: What it wants as its key.
        version: The version that it says it is.
        asked: Each request: method, path, body.
        headers: Of each request.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.status = 200
        self.pause = 0.0
        self.keeps_silent = False
        self.drips = False
        self.answer: bytes | None = None
        self.key: str | None = None
        self.version = "1.20.0"
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.store = QdrantClient(":memory:", force_disable_check_same_thread=True)
        self.lock = threading.Lock()

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients leave where an answer is late."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.0"

    def _serve(self) -> None:
        server, size = self.server, int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        path = unquote(urlsplit(self.path).path)
        server.asked.append((self.command, path, body))
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        time.sleep(server.pause)
        if server.keeps_silent:
            return
        status, answer = server.status, server.answer
        if answer is None and status == 200:
            status, answer = self._answered(path, body)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        while server.drips:
            self.wfile.write(b" ")
            time.sleep(0.02)
        self.wfile.write(answer or b'{"status": {"error": "as the test says"}}')

    def _answered(self, path: str, body: Any) -> tuple[int, bytes]:
        raise NotImplementedError

    do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

    def log_message(self, *_: object) -> None: ...


class _QdrantHandler(_Handler):
    def _answered(self, path: str, body: Any) -> tuple[int, bytes]:
        if self.server.key and self.headers.get("api-key") != self.server.key:
            return 401, b"Must provide an API key or an Authorization bearer token"
        parts = path.strip("/").split("/")
        if parts == [""]:
            about = {"title": "qdrant - vector search engine", "version": self.server.version}
            return 200, json.dumps(about).encode()
        try:
            with self.server.lock:
                result = self._result(self.server.store, parts, body)
        except ValueError as error:
            known = {"not found": 404, "already exists": 409}
            status = next((code for text, code in known.items() if text in str(error)), 400)
            return status, json.dumps({"status": {"error": str(error)}, "time": 0}).encode()
        return 200, json.dumps({"result": result, "status": "ok", "time": 0.001}).encode()

    def _result(self, store: QdrantClient, parts: list[str], body: Any) -> Any:  # noqa: PLR0911
        name = parts[1] if len(parts) > 1 else ""
        match [self.command, *parts[2:]]:
            case ["GET"] if not name:
                return store.get_collections().model_dump(mode="json")
            case ["GET"]:
                return store.get_collection(name).model_dump(mode="json", exclude_none=True)
            case ["GET", "exists"]:
                return {"exists": store.collection_exists(name)}
            case ["PUT"]:
                wanted = models.CreateCollection(**body)
                return store.create_collection(
                    name,
                    vectors_config=wanted.vectors,
                    sparse_vectors_config=wanted.sparse_vectors,
                    metadata=wanted.metadata,
                )
            case ["DELETE"]:
                return store.delete_collection(name)
            case ["PUT", "points"]:
                given = models.PointsList(**body)
                done = store.upsert(name, points=given.points, update_mode=given.update_mode)
                return done.model_dump(mode="json")
            case ["POST", "points", "delete"]:
                selector = models.PointIdsList(**body)
                return store.delete(name, points_selector=selector).model_dump(mode="json")
        return self._read(store, name, parts[2:], body)

    def _read(self, store: QdrantClient, name: str, parts: list[str], body: Any) -> Any:
        match parts:
            case ["points"]:
                asked = models.PointRequest(**body)
                rows = store.retrieve(
                    name,
                    ids=asked.ids,
                    with_payload=asked.with_payload,
                    with_vectors=asked.with_vector or False,
                )
                return [row.model_dump(mode="json") for row in rows]
            case ["points", "scroll"]:
                asked = models.ScrollRequest(**body)
                rows, offset = store.scroll(
                    name,
                    scroll_filter=asked.filter,
                    limit=asked.limit or 10,
                    offset=asked.offset,
                    with_payload=asked.with_payload or False,
                )
                points = [row.model_dump(mode="json") for row in rows]
                return {"points": points, "next_page_offset": offset}
            case ["points", "count"]:
                asked = models.CountRequest(**body)
                return store.count(name, exact=asked.exact or False).model_dump()
            case ["points", "query"]:
                wanted = models.QueryRequest(**body)
                found = store.query_points(
                    name,
                    query=wanted.query,
                    prefetch=wanted.prefetch,
                    limit=wanted.limit,
                    with_payload=wanted.with_payload,
                )
                return found.model_dump(mode="json")
        raise AssertionError(f"no such route here: {self.command} {parts}")


class _EncoderHandler(_Handler):
    def _answered(self, _path: str, body: Any) -> tuple[int, bytes]:
        if self.server.key and self.headers.get("authorization") != f"Bearer {self.server.key}":
            return 401, b"{}"
        rows = [
            {"index": index, "embedding": vector_of(text)}
            for index, text in enumerate(body["input"])
        ]
        return 200, json.dumps({"data": rows[::-1]}).encode()


def vector_of(text: str) -> list[float]:
    """Return counts of letters: equal texts have equal vectors."""
    return [1.0 + text.lower().count(letter) for letter in "abcdefghijklmnop"]


def _served(handler: type[_Handler], port: int = 0) -> Iterator[Server]:
    server = Server(handler, port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    server.store.close()
    thread.join()


@pytest.fixture
def qdrant() -> Iterator[Server]:
    yield from _served(_QdrantHandler)


@pytest.fixture
def encoder() -> Iterator[Server]:
    yield from _served(_EncoderHandler)


@pytest.fixture
def restarted() -> Callable[[int], Any]:
    """Return a function that serves an empty Qdrant at a port."""
    return lambda port: _served(_QdrantHandler, port)


@pytest.fixture(params=["folder", "memory", "url"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the settings of each kind of store."""
    if request.param == "folder":
        return {"path": str(tmp_path / "memories")}
    if request.param == "memory":
        return {"path": ":memory:"}
    return {"url": request.getfixturevalue("qdrant").url}


@pytest.fixture
def fast(encoder: Server) -> dict[str, Any]:
    """Return the settings of an encoder that takes no time."""
    return {"model": f"{encoder.url}/v1/embeddings#letters"}


@pytest.fixture
def open_memory(connect: Connect, fast: dict[str, Any]) -> OpenMemory:
    """Return a function that opens a client of a host with the plugin, which may write."""

    def open_one(**options: Any) -> AbstractAsyncContextManager[Client]:
        given = {"writable": True, **fast, **options}
        return connect(MemoryPlugin, name="memory", **given)

    return open_one


@pytest.fixture
def installed(install: Callable[..., Path]) -> None:
    """Let commands find the plugin."""
    source = "from standards_mcp_memory.plugin import MemoryPlugin as MemoryPlugin"
    install("memory", source, version="0.1.0")


@pytest.fixture
def config(tmp_path: Path, fast: dict[str, Any]) -> Path:
    """Return a configuration with a store of its own."""
    file = tmp_path / "config.toml"
    lines = [
        f"state_dir = {json.dumps(str(tmp_path / 'state'))}",
        "[plugins.memory]",
        f"path = {json.dumps(str(tmp_path / 'memories'))}",
        f"model = {json.dumps(fast['model'])}",
    ]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


@pytest.fixture
def program(
    config: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Return a function that runs ``standards-mcp memory``."""
    monkeypatch.chdir(tmp_path)
    request.getfixturevalue("installed")

    def run(*arguments: str | Path, status: int = 0) -> Done:
        code = run_program(["--config", str(config), "memory", *map(str, arguments)])
        done = Done(*capfd.readouterr())
        assert code == status, done
        return done

    return run


@pytest.fixture
def run(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Return a function that runs a command without the host, whose start takes longer."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, *arguments: str | Path, status: int = 0, **settings: str) -> Done:
        table = tomllib.loads(config.read_text("utf-8"))["plugins"]["memory"]
        location = MemoryLocation(
            MemorySettings.model_validate(table | settings), tmp_path / "state"
        )
        try:
            command = location.bind(COMMANDS[name])
            code = command.main([*map(str, arguments)], name, standalone_mode=False) or 0
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except click.Abort:
            code = 130
        except ToolError as error:
            click.echo(str(error), err=True)
            code = 1
        done = Done(*capsys.readouterr())
        assert code == status, done
        return done

    return run
