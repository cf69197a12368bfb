"""Builds with the real libraries; only the encoder is a small one of our own."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from standards_mcp_encoders import Vectors
from standards_mcp_knowledge.building import BuildOptions, BuildReport, build_dataset
from standards_mcp_knowledge.manifests import Manifest

T = TypeVar("T")
Build = Callable[..., BuildReport]
DIMENSIONS = 64
ABOUT = {"id": "guide", "name": "Guide", "description": "What we know"}


class HashingWork:
    """Encodes texts by the hashes of their words, and counts them."""

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.salt = 0

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        return function(*arguments)

    def encode(self, texts: Sequence[str], _: str) -> Vectors:
        self.encoded.extend(texts)
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.split():
                row[(zlib.crc32(word.encode()) + self.salt) % DIMENSIONS] += 1
        lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / lengths).astype(np.float32)


def manifest(**about: str) -> Manifest:
    return Manifest.of({**ABOUT, **about, "index": "index/docs.index", "metadata": "metadata.json"})


@pytest.fixture
def work() -> HashingWork:
    return HashingWork()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of documents."""
    folder = tmp_path / "documents"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of the dataset."""
    return tmp_path / "datasets" / "guide"


@pytest.fixture
def write(folder: Path) -> Callable[[Mapping[str, str | bytes]], None]:
    """Write documents, by their paths."""

    def write(files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


@pytest.fixture
def build(folder: Path, out: Path, work: HashingWork) -> Build:
    """Build the dataset, with these options; in *place*, if that is given."""

    def build(**options: Any) -> BuildReport:
        place, others = options.pop("place", out), options.pop("others", ())
        about = {key: options.pop(key, value) for key, value in ABOUT.items()}
        wanted = BuildOptions(manifest=manifest(**about), **options)
        return build_dataset(folder, place, wanted, work, lambda _done, _total: None, others)

    return build


@pytest.fixture
def options() -> BuildOptions:
    return BuildOptions(manifest=manifest())


@pytest.fixture
def documents(out: Path) -> Callable[[], list[dict[str, Any]]]:
    """Read the documents of the dataset."""

    def documents() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((out / "metadata.json").read_bytes())["documents"]
        return found

    return documents
