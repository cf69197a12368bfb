"""Answer tool calls from the datasets, in worker processes, and log searches."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from standards_mcp import ApiError, InvalidInputError, NotFoundError, TimedOutError, ToolError

from .answers import (
    HealthAnswer,
    ListAnswer,
    SearchAnswer,
    counts_of,
    search_answer,
    to_detail,
    to_listed,
)
from .datasets import SHORT_WAIT, Dataset, Library, Snapshot
from .manifests import DatasetError
from .settings import KnowledgeSettings
from .workers import tasks
from .workers.pool import OverdueError, Pool, UnavailableError

T = TypeVar("T")

SEARCH_TOOL: Final = "knowledge.search"
LONGEST_QUERY: Final = 1024
ATTEMPTS: Final = 2
"""Most attempts of a call, each in another worker with the configured timeout."""
_MOST_COMPLETIONS: Final = 100
_LONGEST_LOGGED: Final = 100
_LONGEST_ID: Final = 64
_LONGEST_SCANNED: Final = 2000
"""Characters of a query that are searched for secrets; a rejected query may have millions."""
_SECRETS: Final = re.compile(
    r"""
    (?<![^\W_])(?:sk|pk|pcsk|ghp|gho|ghs|github_pat|xox[a-z])[-_][\w-]+   # keys of known services
    | (?<=key=)\S+ | (?<=token=)\S+ | (?<=password=)\S+
    | [A-Za-z0-9+/_=-]{32,}                                    # long hex or base64
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Service:
    """Answers the calls of the tools, while it runs in a task group.

    Args:
        root: The folder of the datasets.
        group: The task group of the workers, and of the tasks that read datasets.
    """

    def __init__(
        self, settings: KnowledgeSettings, root: Path, group: TaskGroup, log: logging.Logger
    ) -> None:
        self._timeout = settings.timeout
        self._pool = Pool(settings, log)
        roots = (root, *settings.extra_roots)
        self._library = Library(roots, self._pool, settings.reload_seconds, group, log)
        self._log = log
        self._began = perf_counter()
        group.start_soon(self._pool.serve)
        group.start_soon(self._load_datasets)

    async def _load_datasets(self) -> None:
        """Read and open the datasets, then log their counts."""
        counts = counts_of(await self._library.snapshot(float("inf")) or Snapshot())
        self._log.info(
            "knowledge ready",
            extra={
                "version": version("standards-mcp-knowledge"),
                "datasets": counts["ready"],
                "errors": counts["errors"],
                "workers": self._pool.processes,
                "milliseconds": round((perf_counter() - self._began) * 1000),
            },
        )

    async def search(self, dataset: str, query: str, top_k: int | None) -> SearchAnswer:
        """Return the passages of a dataset that answer a query, and log the search.

        Raises:
            InvalidInputError: The query is too short or too long. `wrap_tool_call` logs that.
            ToolError: The search failed.
        """
        began = perf_counter()
        query = query.strip()
        if not 1 <= len(query) <= LONGEST_QUERY:
            raise InvalidInputError(
                f"query has {len(query)} characters; it needs 1 to {LONGEST_QUERY:,}."
            )
        outcome, count = "cancelled", 0
        try:
            results = await self._answer(dataset, tasks.search, query, top_k)
            outcome, count = "ok", len(results)
        except Exception as error:
            outcome = getattr(error, "error_type", "internal_error")
            raise
        finally:
            milliseconds = log_search(
                self._log, dataset, query, began=began, outcome=outcome, count=count
            )
        return search_answer(dataset, query, results, milliseconds)

    async def document(self, dataset: str, path: str) -> str:
        """Return the whole document at a path that a search result cites.

        Raises:
            ToolError: The document does not exist, or the dataset cannot be read.
        """
        text = await self._answer(dataset, tasks.document, path)
        if text is None:
            raise NotFoundError(f"Dataset '{dataset}' has no document {path!r}.")
        return text

    async def datasets(self, *, include_errors: bool) -> ListAnswer:
        """List the ready datasets; with *include_errors*, also the excluded ones."""
        snapshot = await self._snapshot()
        entries = snapshot.entries if include_errors else snapshot.ready.values()
        rows = sorted(map(to_listed, entries), key=lambda row: row["id"])
        return {"datasets": rows, "counts": counts_of(snapshot)}

    async def dataset_ids(self, typed: str) -> list[str]:
        """Return the ids of ready datasets that begin with *typed*."""
        ready = (await self._snapshot()).ready
        return sorted(dataset for dataset in ready if dataset.startswith(typed))

    async def document_paths(self, dataset: str, typed: str) -> list[str]:
        """Return document paths that contain *typed*, or [] if the dataset cannot be read."""
        try:
            return await self._answer(dataset, tasks.paths, typed, _MOST_COMPLETIONS)
        except ToolError:
            return []

    async def health(self) -> HealthAnswer:
        """Return the state of the datasets and the workers."""
        pool = self._pool
        # Health is most useful while nothing starts, so it waits only briefly.
        current = await self._library.snapshot(SHORT_WAIT)
        snapshot = current or Snapshot()
        # No worker is needed before the first dataset.
        has_needed_workers = pool.state == "ready" or (current is not None and not pool.is_started)
        is_healthy = has_needed_workers and not snapshot.excluded and not snapshot.opening
        return {
            "status": "failed" if pool.is_failing else "ok" if is_healthy else "degraded",
            "version": version("standards-mcp-knowledge"),
            "uptimeSeconds": round(perf_counter() - self._began, 1),
            "datasets": counts_of(snapshot),
            "details": [to_detail(entry) for entry in snapshot.entries],
            "worker": {
                "state": pool.state,
                "processes": pool.processes,
                "restarts": pool.restarts,
            },
        }

    async def _snapshot(self, dataset: str | None = None) -> Snapshot:
        """Return all datasets, after a wait for *dataset*, by default for all.

        Raises:
            ApiError: The datasets were not read in time, or *dataset* is still being opened.
        """
        snapshot = await self._library.snapshot(self._timeout, dataset)
        if snapshot is None:
            raise _search_unavailable(1)
        if dataset in snapshot.opening and not self._pool.processes:
            raise _search_unavailable(self._pool.next_start)
        if dataset in snapshot.opening:
            raise ApiError(
                f"Dataset '{dataset}' is being opened. Try again in 1 s. {_choices(snapshot)}",
                retry_after=1,
            )
        return snapshot

    async def _answer(self, dataset: str, function: Callable[..., T], *arguments: object) -> T:
        """Run a function of `tasks` on a dataset, with a shorter deadline than the host's.

        Raises:
            ToolError: The dataset is unknown or left out, or the workers fail.
        """
        seconds = ATTEMPTS * self._timeout
        with anyio.move_on_after(seconds):
            snapshot = await self._snapshot(dataset)
            target = self._ready_dataset(snapshot, dataset)
            try:
                return await self._pool.run(function, target.files, target.manifest, *arguments)
            except DatasetError as error:
                self._library.exclude(target, error)
                raise _dataset_unavailable(snapshot, dataset, error.reason) from error
            except UnavailableError as error:
                raise _search_unavailable(error.seconds) from error
            except OverdueError as error:
                raise TimedOutError(
                    f"Search of '{dataset}' took longer than {self._timeout:g} s. "
                    "Try again, with a shorter query."
                ) from error
        raise TimedOutError(
            f"The workers did not answer within {seconds:g} s: they are busy or restarting. "
            "Try again later, or raise plugins.knowledge.workers."
        )

    def _ready_dataset(self, snapshot: Snapshot, dataset: str) -> Dataset:
        if dataset in snapshot.ready:
            return snapshot.ready[dataset]
        for entry in snapshot.excluded:
            if entry.id == dataset and entry.kind == "worker" and self._pool.is_failing:
                raise _search_unavailable(self._pool.next_start)
            if entry.id == dataset:
                raise _dataset_unavailable(snapshot, dataset, entry.reason)
        raise NotFoundError(f"Dataset '{dataset}' not found. {_choices(snapshot)}")


def _choices(snapshot: Snapshot, excluded: str = "") -> str:
    return f"Available datasets: {', '.join(sorted({*snapshot.ready} - {excluded})) or 'none'}"


def _dataset_unavailable(snapshot: Snapshot, dataset: str, reason: str) -> ApiError:
    return ApiError(
        f"Dataset '{dataset}' is not available: {reason}. {_choices(snapshot, dataset)}"
    )


def _search_unavailable(seconds: float) -> ApiError:
    return ApiError(
        f"Knowledge search is unavailable. Try again in {seconds:g} s.", retry_after=seconds
    )


def loggable(query: object) -> str:
    """Return the beginning of a query on one line, with likely secrets as ``***``.

    A query that is not a string becomes the name of its type; None becomes an empty string.
    """
    if query is None:
        return ""
    text = query if isinstance(query, str) else f"({type(query).__name__})"
    line = "".join(char if char.isprintable() else " " for char in text[:_LONGEST_SCANNED])
    return _SECRETS.sub("***", line)[:_LONGEST_LOGGED]


def log_search(
    log: logging.Logger, dataset: object, query: object, *, began: float, outcome: str, count: int
) -> float:
    """Log one search, and return its duration in milliseconds.

    Args:
        dataset: The client's argument. Like *query*, it may be invalid.
        began: The value of `perf_counter` at the start of the search.
        outcome: ``ok``, ``cancelled``, or the `error_type` of the error.
        count: Number of results.
    """
    is_id = isinstance(dataset, str) and len(dataset) <= _LONGEST_ID
    milliseconds = round((perf_counter() - began) * 1000, 1)
    log.info(
        "knowledge search",
        extra={
            "tool": SEARCH_TOOL,
            "dataset": dataset if is_id else loggable(dataset),
            "query": loggable(query),
            "result_count": count,
            "duration_ms": milliseconds,
            "outcome": outcome,
        },
    )
    return milliseconds
