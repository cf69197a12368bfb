"""What runs in a worker. Each function gets what the worker has open as its first argument.

The host names these functions in its requests, so this module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from standards_mcp_knowledge.encoders import DEFAULT_MODEL
from standards_mcp_knowledge.manifests import Files
from standards_mcp_knowledge.metadata import path_of
from standards_mcp_knowledge.search import Hit, hits

if TYPE_CHECKING:
    from standards_mcp_encoders import Vectors

    from .opened import Opened


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a dataset once it is open."""

    documents: int
    dimension: int
    model: str


def open_built_in(opened: Opened) -> None:
    """Load the encoder that most datasets need, and encode a word."""
    opened.encode(["word"], DEFAULT_MODEL)


def inspect(opened: Opened, files: Files) -> Facts:
    """Open a dataset, and search it once. An encoder at an address is not asked.

    Raises:
        DatasetError: It breaks a rule.
    """
    dataset = opened.dataset(files)
    return Facts(len(dataset.documents), dataset.dimension, dataset.model)


def try_out(opened: Opened, files: Files) -> Facts:
    """Open a dataset, and search it as a client does.

    Raises:
        DatasetError: It breaks a rule, or its encoder does not answer.
    """
    opened.dataset(files).nearest("word", 1)
    return inspect(opened, files)


def close_others(opened: Opened, datasets: Sequence[Files]) -> None:
    """Close all datasets but these."""
    opened.keep_only(datasets)


def search(opened: Opened, files: Files, name: str, query: str, k: int) -> list[Hit]:
    """Return the passages of the dataset *name* that are nearest to a query in meaning.

    Raises:
        DatasetError: Its encoder fails or does not fit, or it has changed and breaks a rule now.
    """
    dataset = opened.dataset(files)
    return hits(dataset.nearest(query, k), dataset.metric, dataset.documents, name)


def document(opened: Opened, files: Files, name: str, path: str) -> str | None:
    """Return all chunks of the document with this path, in order, or None."""
    documents = opened.dataset(files).documents
    chunks = [
        (each.get("chunk") or 0, row, each.get("content") or each.get("snippet") or "")
        for row, each in enumerate(documents)
        if path_of(each, row, name) == path
    ]
    return "\n\n".join(text for _, _, text in sorted(chunks)) if chunks else None


def paths(opened: Opened, files: Files, name: str, typed: str, most: int) -> list[str]:
    """Return paths of documents with *typed* in them: those that begin with it first."""
    known = {path_of(each, row, name) for row, each in enumerate(opened.dataset(files).documents)}
    typed = typed.casefold()
    fitting = (path for path in known if typed in path.casefold())
    return sorted(fitting, key=lambda path: (not path.casefold().startswith(typed), path))[:most]


def encode(opened: Opened, texts: Sequence[str], model: str) -> Vectors:
    """Return a row of length 1 for each text.

    Raises:
        DatasetError: There is no encoder for the model.
        ServiceError: The encoder fails.
    """
    return opened.encode(texts, model)


def call(_: Opened, function: Callable[..., T], *arguments: object) -> T:
    """Call a function that needs nothing that is open."""
    return function(*arguments)
