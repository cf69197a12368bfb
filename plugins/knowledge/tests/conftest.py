"""Datasets for the tests, of any kind of index."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from standards_mcp_encoders import Vectors, open_encoder

TEXTS = (
    "Fractions are equal parts of a whole",
    "Dogs bark at night",
    "How to bake a cake with flour and eggs",
    "A single tool is switched off in the settings",
    "The train to the coast leaves at noon",
)
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
