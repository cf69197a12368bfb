"""Formats of the tools' answers."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .datasets import Entry, Snapshot
from .documents import Hit
from .manifests import Excluded

Status = Literal["ready", "error"]


class SearchFacts(TypedDict):
    """The dataset, query and duration of a search."""

    dataset: str
    query: str
    resultCount: int
    durationMs: float


class SearchAnswer(TypedDict):
    """Passages, best first."""

    results: list[Hit]
    metadata: SearchFacts


class Listed(TypedDict):
    """A dataset in a list."""

    id: str
    name: str | None
    description: str | None
    defaultTopK: int | None
    status: Status
    documents: int | None
    error: NotRequired[Annotated[str, Field(description="The reason for leaving it out.")]]


class Counts(TypedDict):
    """Numbers of datasets."""

    total: int
    ready: int
    errors: int


class ListAnswer(TypedDict):
    """The datasets, by id."""

    datasets: list[Listed]
    counts: Counts


class Detail(TypedDict):
    """The state of a dataset."""

    id: str
    status: Status
    documents: int | None
    dimension: int | None
    model: str | None
    error: NotRequired[str]


class WorkerFacts(TypedDict):
    """The processes that search."""

    state: Literal["starting", "ready", "restarting", "stopped"]
    processes: int
    restarts: int


class HealthAnswer(TypedDict):
    """The state of the plugin."""

    status: Literal["ok", "degraded", "failed"]
    version: str
    uptimeSeconds: float
    datasets: Counts
    details: list[Detail]
    worker: WorkerFacts


def search_answer(
    dataset: str, query: str, results: list[Hit], milliseconds: float
) -> SearchAnswer:
    """Return the answer to a search."""
    return {
        "results": results,
        "metadata": {
            "dataset": dataset,
            "query": query,
            "resultCount": len(results),
            "durationMs": milliseconds,
        },
    }


def counts_of(snapshot: Snapshot) -> Counts:
    """Count the datasets."""
    ready, errors = len(snapshot.ready), len(snapshot.excluded)
    return {"total": ready + errors, "ready": ready, "errors": errors}


def to_listed(entry: Entry) -> Listed:
    """Return the entry of a dataset in a list."""
    manifest = entry.manifest
    row: Listed = {
        "id": entry.id,
        "name": manifest.name if manifest else None,
        "description": manifest.description if manifest else None,
        "defaultTopK": manifest.default_top_k if manifest else None,
        "status": "ready",
        "documents": None,
    }
    if isinstance(entry, Excluded):
        return {**row, "status": "error", "error": entry.reason}
    return {**row, "documents": entry.facts.documents}


def to_detail(entry: Entry) -> Detail:
    """Return the state of a dataset for health."""
    facts = None if isinstance(entry, Excluded) else entry.facts
    detail: Detail = {
        "id": entry.id,
        "status": "ready" if facts else "error",
        "documents": facts.documents if facts else None,
        "dimension": facts.dimension if facts else None,
        "model": facts.model if facts else None,
    }
    return {**detail, "error": entry.reason} if isinstance(entry, Excluded) else detail
