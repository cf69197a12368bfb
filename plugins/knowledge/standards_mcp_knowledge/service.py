"""Answer tool calls from the datasets, in worker processes, and log searches."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

import anyio

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
from .datasets import Dataset, Library, Snapshot
from .encoders import EncoderSettings
from .manifests import DatasetError
from .settings import KnowledgeSettings
from .workers import tasks
from .workers.pool import OverdueError, Pool, Times, UnavailableError

T = TypeVar("T")

SEARCH_TOOL: Final = "knowledge.search"
LONGEST_QUERY: Final = 1024
ATTEMPTS: Final = 2
"""Most attempts of a call, each in another worker with the configured timeout."""
_MOST_COMPLETIONS: Final = 100
_SHORT_WAIT: Final = 2.0
"""Seconds that a call waits for datasets that it does not need."""
_ENDPOINT_TIMEOUT_SHARE: Final = 0.7
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


def make_pool(settings: KnowledgeSettings, log: logging.Logger) -> Pool:
    """Return a pool with these settings. The pool is not started."""
    times = Times(attempt=settings.timeout)
    # The deadline of an address is shorter than the worker's, so the error names the address.
    encoders = EncoderSettings(
        settings.encoders, settings.embedding_api_key, _ENDPOINT_TIMEOUT_SHARE * settings.timeout
    )
    return Pool(settings.worker_memory, encoders, settings.workers, log, times)


@asynccontextmanager
async def running_service(
    settings: KnowledgeSettings, root: Path, log: logging.Logger
) -> AsyncGenerator[Service]:
    """Run a service. It reads the datasets and starts workers in the background.

    Args:
        root: The folder of the datasets.
    """
    async with anyio.create_task_group() as group:
        pool = make_pool(settings, log)
        roots = (root, *settings.extra_roots)
        library = Library(roots, pool, settings.reload_seconds, group, log)
        service = Service(settings.timeout, pool, library, log)
        group.start_soon(pool.serve)
        group.start_soon(service.load_datasets)
        try:
            yield service
        finally:
            group.cancel_scope.cancel()


class Service:
    """Answers the calls of the tools.

    Args:
        timeout: Seconds that a worker has for one call.
    """

    def __init__(self, timeout: float, pool: Pool, library: Library, log: logging.Logger) -> None:
        self._timeout = timeout
        self._pool = pool
        self._library = library
        self._log = log
        self._began = perf_counter()

    async def load_datasets(self) -> None:
        """Read and open the datasets, then log their counts."""
        await self._library.refresh(float("inf"))
        counts = counts_of(await self._library.wait_until_opened(None))
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
        snapshot = await self._current_snapshot()
        entries = snapshot.entries if include_errors else snapshot.ready.values()
        rows = sorted(map(to_listed, entries), key=lambda row: row["id"])
        return {"datasets": rows, "counts": counts_of(snapshot)}

    async def dataset_ids(self, typed: str) -> list[str]:
        """Return the ids of ready datasets that begin with *typed*."""
        ready = (await self._current_snapshot()).ready
        return sorted(dataset for dataset in ready if dataset.startswith(typed))

    async def document_paths(self, dataset: str, typed: str) -> list[str]:
        """Return document paths that contain *typed*, or [] if the dataset cannot be read."""
        try:
            return await self._answer(dataset, tasks.paths, typed, _MOST_COMPLETIONS)
        except ToolError:
            return []

    async def health(self) -> HealthAnswer:
        """Return the state of the datasets and the workers."""
        # Health is most useful while nothing starts, so it waits only briefly.
        current = await self._library.refresh(_SHORT_WAIT)
        snapshot = await self._library.wait_until_opened(_SHORT_WAIT)
        pool = self._pool
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

    async def _current_snapshot(self, dataset: str | None = None) -> Snapshot:
        """Read the datasets if necessary, wait until they are opened, and return them.

        Args:
            dataset: The dataset that the call needs; only this one is waited for. If it is unknown,
                all datasets are, but only briefly if some are ready.

        Raises:
            ApiError: The datasets were not read in time, or *dataset* is still being opened.
        """
        max_wait = self._timeout
        current = await self._library.refresh(max_wait)
        if current is None:
            raise _search_unavailable(1)
        is_known = dataset in current.ready or dataset in current.opening
        if current.ready and not is_known:
            max_wait = min(max_wait, _SHORT_WAIT)
        snapshot = await self._library.wait_until_opened(max_wait, dataset if is_known else None)
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
            snapshot = await self._current_snapshot(dataset)
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
