"""Functions that run in a worker. Each gets the worker's `OpenResources` as its first argument.

The host names these functions in its requests, so this module imports nothing heavy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from standards_mcp_knowledge.documents import Hit, hits, path_of
from standards_mcp_knowledge.encoders import DEFAULT_MODEL
from standards_mcp_knowledge.manifests import Files, Manifest

if TYPE_CHECKING:
    from standards_mcp_encoders import Vectors
    from standards_mcp_knowledge.settings import KnowledgeSettings

    from .open_resources import OpenResources


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of an open dataset."""

    documents: int
    dimension: int
    model: str


def begin(resources: OpenResources, settings: KnowledgeSettings) -> None:
    """Apply the settings, and load the default encoder by encoding a word."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  - it is missing on Windows

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        memory = settings.worker_memory
        limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    resources.settings = settings
    resources.encode(["word"], DEFAULT_MODEL)


def check(resources: OpenResources, files: Files, asks_encoder: bool = False) -> Facts:  # noqa: FBT001, FBT002  requests have no keywords
    """Open a dataset and search it once.

    Args:
        asks_encoder: True for another search as of a client, also by an encoder at an address.

    Raises:
        DatasetError: The dataset breaks a rule, or its encoder does not answer.
    """
    dataset = resources.dataset(files)
    if asks_encoder:
        dataset.nearest("word", 1)
    return Facts(len(dataset.documents), dataset.dimension, dataset.model)


def close_others(resources: OpenResources, datasets: Sequence[Files]) -> None:
    """Close all datasets but these."""
    resources.keep_only(datasets)


def search(
    resources: OpenResources, files: Files, manifest: Manifest, query: str, k: int | None
) -> list[Hit]:
    """Return the passages of a dataset that are nearest to a query.

    Args:
        k: Maximum number of passages; None for the manifest's default.

    Raises:
        DatasetError: The encoder fails or does not fit, or changed files break a rule.
    """
    dataset = resources.dataset(files)
    nearest = dataset.nearest(query, k or manifest.default_top_k)
    return hits(nearest, dataset.metric, dataset.documents, manifest.id)


def document(resources: OpenResources, files: Files, manifest: Manifest, path: str) -> str | None:
    """Return the chunks of the document with this path as one text; None if there are none."""
    chunks = [
        (chunk.get("chunk") or 0, row, chunk.get("content") or chunk.get("snippet") or "")
        for row, chunk in enumerate(resources.dataset(files).documents)
        if path_of(chunk, row, manifest.id) == path
    ]
    return "\n\n".join(text for _, _, text in sorted(chunks)) if chunks else None


def paths(
    resources: OpenResources, files: Files, manifest: Manifest, typed: str, most: int
) -> list[str]:
    """Return document paths that contain *typed*; first the paths that begin with it."""
    documents = resources.dataset(files).documents
    all_paths = {path_of(document, row, manifest.id) for row, document in enumerate(documents)}
    typed = typed.casefold()
    fitting = (path for path in all_paths if typed in path.casefold())
    return sorted(fitting, key=lambda path: (not path.casefold().startswith(typed), path))[:most]


def encode(resources: OpenResources, texts: Sequence[str], model: str) -> Vectors:
    """Return a row of length 1 for each text.

    Raises:
        DatasetError: No encoder is known for the model.
        ServiceError: The encoder fails.
    """
    return resources.encode(texts, model)


def call(_: OpenResources, function: Callable[..., T], *arguments: object) -> T:
    """Call a function that needs no dataset."""
    return function(*arguments)
