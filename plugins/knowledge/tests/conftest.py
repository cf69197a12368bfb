"""Datasets for the tests, of any kind of index, and a server of them in this process."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import faiss
import numpy as np
import pytest
from mcp import Client
from mcp_types import TextContent
from support.waiting import PAUSE, WAIT

from standards_mcp.testing import Connect
from standards_mcp_encoders import Vectors, open_encoder
from standards_mcp_knowledge import commands, service
from standards_mcp_knowledge.plugin import KnowledgePlugin
from standards_mcp_knowledge.workers import tasks
from standards_mcp_knowledge.workers.open_resources import OpenResources
from standards_mcp_knowledge.workers.pool import Pool

TEXTS = (
    "Fractions are equal parts of a whole",
    "Dogs bark at night",
    "How to bake a cake with flour and eggs",
    "A single tool is switched off in the settings",
    "The train to the coast leaves at noon",
)
QUERY = "How do I turn one tool off?"
MakeDataset = Callable[..., Path]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def vectors() -> Vectors:
    return open_encoder("minilm").encode(TEXTS)


def documents(texts: Sequence[str] = TEXTS) -> list[dict[str, Any]]:
    return [
        {"id": f"text-{row}", "title": text[:12], "path": f"docs/{row}.md", "content": text}
        for row, text in enumerate(texts)
    ]


def write_index(vectors: Vectors, path: Path, kind: str = "Flat", metric: str = "ip") -> None:
    metrics = {"ip": faiss.METRIC_INNER_PRODUCT, "l2": faiss.METRIC_L2, "l1": faiss.METRIC_L1}
    index = faiss.index_factory(vectors.shape[1], kind, metrics[metric])
    index.train(vectors)
    if kind.startswith("IDMap"):
        index.add_with_ids(vectors, np.arange(len(vectors)))
    else:
        index.add(vectors)
    # Written aside: who has opened the old file keeps it.
    faiss.write_index(index, f"{path}.new")
    Path(f"{path}.new").replace(path)


@pytest.fixture
def installed(install: Callable[..., Path]) -> None:
    """Let processes that tests start find the plugin."""
    install(
        "knowledge",
        "from standards_mcp_knowledge.plugin import KnowledgePlugin as KnowledgePlugin",
        version="0.1.0",
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "datasets"
    folder.mkdir()
    return folder


@pytest.fixture
def make_dataset(root: Path, vectors: Vectors) -> MakeDataset:
    """Return a function that writes a dataset, with valid defaults for missing arguments."""

    def make(
        name: str = "guide",
        /,
        *,
        kind: str = "Flat",
        metric: str = "ip",
        rows: Vectors = vectors,
        metadata: Any = None,
        into: Path = root,
        **manifest: Any,
    ) -> Path:
        folder = into / name
        folder.mkdir(parents=True, exist_ok=True)
        write_index(np.ascontiguousarray(rows), folder / "docs.index", kind, metric)
        given = documents() if metadata is None else metadata
        (folder / "metadata.json").write_text(json.dumps(given), "utf-8")
        described = {
            "id": name,
            "name": f"The {name}",
            "description": "What it is about.",
            "index": "docs.index",
            "metadata": "metadata.json",
            **manifest,
        }
        kept = {key: value for key, value in described.items() if value is not ...}
        (folder / "manifest.json").write_text(json.dumps(kept), "utf-8")
        return folder

    return make


class WorkerHere:
    """Runs the functions of a worker in this process, which saves the start of one."""

    pid = 0

    def __init__(self) -> None:
        self.is_usable = True
        self._resources = OpenResources()
        self._ended = anyio.Event()

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if function is tasks.begin:
            self._resources.settings = arguments[0]  # and no limit of this process's memory
            return None
        return await anyio.to_thread.run_sync(partial(function, self._resources, *arguments))

    def end(self, _: str) -> None:
        self.is_usable = False
        self._ended.set()

    async def wait(self) -> str:
        await self._ended.wait()
        return "it was ended"

    async def close(self) -> None:
        self.end("")

    async def log_output(self) -> None:
        """Have no output."""


async def start_here(_: logging.Logger) -> WorkerHere:
    return WorkerHere()


@pytest.fixture
def workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the plugin have its workers in this process."""
    for module in (service, commands):
        monkeypatch.setattr(module, "Pool", partial(Pool, start=start_here))


class Server:
    """The plugin in this process, and a client of it."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a tool, whose text is the same JSON."""
        result = await self.client.call_tool(f"knowledge_{tool}", arguments)
        assert result.structured_content is not None
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert json.loads(content.text) == result.structured_content
        return result.structured_content

    async def search(self, dataset: str = "guide", **more: Any) -> dict[str, Any]:
        return await self.call("search", **{"dataset": dataset, "query": QUERY, **more})

    async def until_found(self, dataset: str = "guide") -> None:
        with anyio.fail_after(WAIT):
            while not (await self.search(dataset))["results"]:  # noqa: ASYNC110
                await anyio.sleep(PAUSE)

    async def reasons(self) -> dict[str, str]:
        """Return the errors of all datasets, by their ids."""
        listed = (await self.call("listDatasets", includeErrors=True))["datasets"]
        return {entry["id"]: entry.get("error", "") for entry in listed}

    async def until_state(self, state: str) -> dict[str, Any]:
        """Return the health once the workers are in a state."""
        with anyio.fail_after(WAIT):
            while True:
                health = await self.call("health")
                if health["worker"]["state"] == state:
                    return health
                await anyio.sleep(PAUSE)


Serve = Callable[..., AbstractAsyncContextManager[Server]]


@pytest.fixture
def serve_in_processes(connect: Connect, root: Path) -> Serve:
    """Return a function that serves the datasets, by default with one worker."""

    @asynccontextmanager
    async def serve(**settings: Any) -> AsyncGenerator[Server]:
        merged = {"root": root, "workers": 1, **settings}
        async with connect(KnowledgePlugin, name="knowledge", **merged) as client:
            yield Server(client)

    return serve


@pytest.fixture
def serve(serve_in_processes: Serve, workers_here: None) -> Serve:
    """Return a function that serves the datasets without a process."""
    del workers_here
    return serve_in_processes
