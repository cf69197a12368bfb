"""A dataset that is wrong, hangs or is meant ill costs the others nothing."""

from __future__ import annotations

import http.server
import json
import logging
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp.cli import run
from standards_mcp_knowledge.datasets import open_and_check
from standards_mcp_knowledge.manifests import DatasetError, Excluded, read_source
from standards_mcp_knowledge.workers.pool import OverdueError, UnavailableError

pytestmark = pytest.mark.anyio
MakeDataset = Callable[..., Path]
Serve = Callable[..., Any]


class Endpoint(http.server.ThreadingHTTPServer):
    """An OpenAI-compatible endpoint.

    Attributes:
        is_silent: True if it accepts requests and does not answer.
        status: The status of its answers.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.is_silent = False
        self.status = 200
        self.keys: list[str | None] = []
        self.ended = threading.Event()

    @property
    def model(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/embeddings#x"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.server.keys.append(self.headers["Authorization"])
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.is_silent:
            self.server.ended.wait(60)
        texts = given["input"] if isinstance(given["input"], list) else [given["input"]]
        vector = [1.0] + [0.0] * 383
        data = [{"index": number, "embedding": vector} for number in range(len(texts))]
        body = json.dumps({"data": data, "model": "x"}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Generator[Endpoint]:
    with serving(Endpoint()) as server:
        yield server


@contextmanager
def serving(server: Endpoint) -> Generator[Endpoint]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def metadata(model: str) -> dict[str, Any]:
    return {"model": model, "documents": [{"path": f"{row}.md"} for row in range(5)]}


async def test_a_path_that_cannot_be_looked_up_leaves_its_dataset_out_and_no_other(
    serve: Serve, make_dataset: MakeDataset, root: Path
):
    make_dataset("good")
    make_dataset("bad", index="x" * 300)
    (root / os.fsdecode(b"caf\xe9")).mkdir()
    (root / os.fsdecode(b"caf\xe9") / "manifest.json").write_text("{")
    async with serve() as server:
        assert (await server.search("good"))["results"]
        told = await server.reasons()
        assert "File name too long" in told["bad"]
        assert told["caf?"].startswith("Manifest is not valid JSON")
        assert (await server.call("health"))["datasets"] == {"total": 3, "ready": 1, "errors": 2}


async def test_a_dataset_that_is_left_out_keeps_its_id_and_known_facts(
    serve: Serve, make_dataset: MakeDataset
):
    make_dataset("folder", id="docs", description=...)
    (make_dataset("gone") / "metadata.json").unlink()
    async with serve() as server:
        answer = await server.search("docs")
        assert answer["message"].startswith("Dataset 'docs' is not available: Required: desc")
        found = await server.call("listDatasets", includeErrors=True)
        known = {each["id"]: (each["name"], each["defaultTopK"]) for each in found["datasets"]}
        assert known == {"docs": (None, None), "gone": ("The gone", 5)}


async def test_an_address_is_asked_by_searches_alone_and_costs_the_others_no_worker(
    serve: Serve, make_dataset: MakeDataset, endpoint: Endpoint
):
    endpoint.is_silent = True
    make_dataset("good")
    for name in ("a", "b", "c"):
        make_dataset(name, metadata=metadata(endpoint.model))
    options = {"timeout": 3, "reload_seconds": 0}
    async with serve(**options) as server:
        await server.until_found("good")
        assert len((await server.call("listDatasets"))["datasets"]) == 4
        assert endpoint.keys == []
        for name in ("a", "b"):
            answer = await server.search(name)
            assert answer["error_type"] == "api_error"
            expected = f"Dataset '{name}' is not available: No encoder for model 'http://127.0.0.1"
            assert answer["message"].startswith(expected)
            assert "no answer within 2.1 seconds; check plugins.knowledge." in answer["message"]
        # The second did not wait for it again.
        assert len(endpoint.keys) == 1
        assert answer["message"].endswith("Available datasets: a, c, good")
        assert (await server.search("good"))["results"]
        assert (await server.call("health"))["worker"]["restarts"] == 0
        make_dataset("new")
        await server.until_found("new")


async def test_an_address_that_answers_again_is_asked_again(
    serve: Serve, make_dataset: MakeDataset, endpoint: Endpoint
):
    make_dataset("good", metadata=metadata(endpoint.model))
    async with serve() as server:
        assert (await server.search("good"))["results"]
        endpoint.status = 400
        assert "Bad Request" in (await server.search("good"))["message"]
        endpoint.status = 200
        await server.until_found("good")


async def test_a_dataset_that_its_address_does_not_fit_is_left_out_from_the_first_search_on(
    serve: Serve, make_dataset: MakeDataset, endpoint: Endpoint, vectors: Any
):
    make_dataset("bad", rows=vectors[:, :9], metadata=metadata(endpoint.model))
    reason = f"Index has 9 dimensions, encoder {endpoint.model} has 384"
    async with serve() as server:
        assert await server.reasons() == {"bad": ""}
        assert reason in (await server.search("bad"))["message"]
        assert await server.reasons() == {"bad": reason}
        assert reason in (await server.search("bad"))["message"]
    assert len(endpoint.keys) == 1


@pytest.mark.usefixtures("installed", "workers_here")
def test_a_check_asks_the_address_too(
    make_dataset: MakeDataset,
    root: Path,
    endpoint: Endpoint,
    vectors: Any,
    capsys: pytest.CaptureFixture[str],
):
    make_dataset("bad", rows=vectors[:, :9], metadata=metadata(endpoint.model))
    make_dataset("good", metadata=metadata(endpoint.model))
    options = ["--set", f"plugins.knowledge.root={root}"]
    assert run([*options, "knowledge", "check"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(f"Index has 9 dimensions, encoder {endpoint.model} has 384")
    assert said[1].endswith(": good")


async def test_an_address_that_a_dataset_names_does_not_get_the_key(
    serve: Serve, make_dataset: MakeDataset, endpoint: Endpoint
):
    make_dataset("good", metadata=metadata(endpoint.model))
    options = {"embedding_api_key": "sk-secret"}
    async with serve(**options) as server:
        assert (await server.search("good"))["results"]
    assert set(endpoint.keys) == {None}
    options["encoders"] = {endpoint.model: endpoint.model}
    async with serve(**options) as server:
        assert (await server.search("good"))["results"]
    assert endpoint.keys[-1] == "Bearer sk-secret"


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (DatasetError("path", "It went away"), 0),
        (DatasetError("index", "It is damaged"), None),
        (UnavailableError(1), 300),
        (OverdueError(60), 300),
        (RuntimeError("unexpected"), None),
    ],
)
async def test_errors_that_may_pass_are_checked_again_later(
    make_dataset: MakeDataset, root: Path, error: Exception, waits: float | None
):
    class Pool:
        start_timeout = 60.0
        is_failing = False

        async def run(self, *_: Any, **__: Any) -> None:
            raise error

    pool: Any = Pool()
    source: Any = read_source(make_dataset() / "manifest.json", [root])
    entry = await open_and_check(pool, source)
    assert isinstance(entry, Excluded)
    expected = None if waits is None else pytest.approx(anyio.current_time() + waits, abs=60)
    assert entry.retry_at == (0 if waits == 0 else expected)


async def test_a_dataset_without_documents_is_served_with_a_warning(
    serve: Serve,
    make_dataset: MakeDataset,
    vectors: Any,
    caplog: pytest.LogCaptureFixture,
):
    logging.getLogger("standards_mcp").propagate = True
    make_dataset("empty", rows=vectors[:0], metadata=[])
    async with serve() as server:
        assert (await server.search("empty"))["results"] == []
    assert "dataset has no documents" in caplog.text
