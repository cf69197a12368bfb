"""The files of a dataset, and what is in them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from standards_mcp_knowledge.manifests import NAME as MANIFEST
from standards_mcp_knowledge.metadata import SNIPPET

from .options import BuildOptions
from .work import Vectors, Work

BUILT_BY: Final = "standards-mcp-knowledge"
METADATA: Final = "metadata.json"
INDEX: Final = "index/docs.index"


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a file that a search can find.

    Attributes:
        path: That of the file, relative to the folder, with ``/``.
        chunk: Its number in the file, from 1.
        chunk_total: How many the file has.
    """

    path: str
    title: str
    content: str
    chunk: int
    chunk_total: int

    @property
    def to_encode(self) -> str:
        """The text whose vector stands for it: few passages name what they are about."""
        return f"{self.title}\n{self.content}"

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Passage:
        """Return the passage of a document that `write_dataset` wrote."""
        keys = ("path", "title", "content", "chunk", "chunk_total")
        return cls(*(document[key] for key in keys))


def write_dataset(
    folder: Path, options: BuildOptions, passages: Sequence[Passage], vectors: Vectors, work: Work
) -> None:
    """Write all files of a dataset into a folder, which is made; row i belongs to passage i.

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
