"""Write and read the files of a built dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from standards_mcp_knowledge.documents import SNIPPET
from standards_mcp_knowledge.manifests import NAME as MANIFEST

from .options import BuildError, BuildOptions, Vectors, Work

BUILT_BY: Final = "standards-mcp-knowledge"
METADATA: Final = "metadata.json"
INDEX: Final = "index/docs.index"


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a file that a search can find.

    Attributes:
        path: The path of the file relative to the folder, with ``/``.
        chunk: Its number in the file, from 1.
        chunk_total: Number of passages of the file.
    """

    path: str
    title: str
    content: str
    chunk: int
    chunk_total: int

    @property
    def to_encode(self) -> str:
        """The text to embed. It has the title, because few passages name their subject."""
        return f"{self.title}\n{self.content}"

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Passage:
        """Return the passage of a document that `write_dataset` wrote."""
        keys = ("path", "title", "content", "chunk", "chunk_total")
        return cls(*(document[key] for key in keys))


def write_dataset(
    folder: Path, options: BuildOptions, passages: Sequence[Passage], vectors: Vectors, work: Work
) -> None:
    """Create a folder with all files of a dataset; row i of the vectors belongs to passage i.

    Raises:
        OSError: They cannot be written.
    """
    (folder / INDEX).parent.mkdir(parents=True)
    work.write_index(vectors, folder / INDEX)
    _write_json(folder / METADATA, _metadata(options, passages, vectors.shape[1]))
    _write_json(folder / MANIFEST, _manifest(options))
    for name in (INDEX, METADATA, MANIFEST):
        with (folder / name).open("rb+") as file:
            os.fsync(file.fileno())


def _manifest(options: BuildOptions) -> dict[str, str]:
    return {
        "id": options.id,
        "name": options.name.strip(),
        "description": options.description.strip(),
        "index": INDEX,
        "metadata": METADATA,
        "builtBy": BUILT_BY,
    }


def _metadata(
    options: BuildOptions, passages: Sequence[Passage], dimensions: int
) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "model": options.model,
        "datasetId": options.id,
        "name": options.name.strip(),
        "description": options.description.strip(),
        "createdAt": now,
        "stats": {
            "totalFiles": len({passage.path for passage in passages}),
            "totalChunks": len(passages),
            "embeddingDimensions": dimensions,
            "indexedAt": now,
        },
        "documents": [
            {
                "id": f"{options.id}-{number}",
                "title": passage.title,
                "path": passage.path,
                "content": passage.content,
                "snippet": passage.content[:SNIPPET],
                "chunk": passage.chunk,
                "chunk_total": passage.chunk_total,
            }
            for number, passage in enumerate(passages, 1)
        ],
    }


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.write("\n")


_OURS: Final = frozenset((MANIFEST, METADATA, INDEX))
_OF_DESKTOPS: Final = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))
_ALIKE: Final = 0.99
"""The least cosine of two vectors of one text, because quantised encoders vary a little."""


def check_replaceable(out: Path, identifier: str) -> None:
    """Check that the folder is empty or holds only a built dataset, which a build may replace.

    Raises:
        BuildError: It holds other files.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise BuildError(f"{out} is not a folder; choose another place for the dataset")
    if not any(out.iterdir()):
        return
    manifest = _json(out / MANIFEST)
    if manifest.get("builtBy") == BUILT_BY and manifest.get("id") != identifier:
        raise BuildError(
            f"{out} holds the dataset '{manifest.get('id')}'; choose another folder or that id"
        )
    if manifest.get("builtBy") != BUILT_BY:
        raise BuildError(f"{out} holds files that no build has written; choose another folder")
    files = [path for path in out.rglob("*") if not path.is_dir()]
    names = {path.relative_to(out).as_posix() for path in files if path.name not in _OF_DESKTOPS}
    foreign = names - _OURS
    if foreign:
        raise BuildError(f"{out} also holds {min(foreign)}, which would be lost; move it elsewhere")


def known_vectors(
    datasets: Iterable[Path], model: str, texts: set[str], work: Work
) -> dict[str, Vectors]:
    """Return the vectors of *texts* from built datasets, by text.

    Datasets are read in their order until all texts have vectors.
    """
    vectors: dict[str, Vectors] = {}
    for folder in datasets:
        if missing := texts - vectors.keys():
            vectors |= _vectors_in(folder, model, missing, work)
    return vectors


def _vectors_in(folder: Path, model: str, texts: set[str], work: Work) -> dict[str, Vectors]:
    """Return the vectors of texts from one dataset.

    One of the texts is encoded again. If its vector differs, the encoder has changed under the same
    name, and no vector is returned.
    """
    try:
        place = folder.stat()
        metadata = _json(folder / METADATA)
        if metadata.get("model") != model or _json(folder / MANIFEST).get("builtBy") != BUILT_BY:
            return {}
        rows = [Passage.read(document).to_encode for document in metadata["documents"]]
        if texts.isdisjoint(rows):
            return {}
        vectors = work.read_vectors(folder / INDEX)
        # If another build replaced the folder meanwhile, the index belongs to other texts.
        is_replaced = not os.path.samestat(place, folder.stat())
    except (OSError, KeyError, TypeError):
        return {}
    if is_replaced or len(rows) != len(vectors):
        return {}
    reused = {text: vector for text, vector in zip(rows, vectors, strict=True) if text in texts}
    text, vector = next(iter(reused.items()))
    again = work.encode([text])[0]
    return reused if again.shape == vector.shape and np.dot(again, vector) > _ALIKE else {}


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one if the file is missing or invalid."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
