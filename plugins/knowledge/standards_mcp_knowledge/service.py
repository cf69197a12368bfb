"""Answer the tools' calls with the datasets and the workers."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from standards_mcp import (
    ApiError,
    InvalidInputError,
    NotFoundError,
    ServiceError,
    TimedOutError,
    ToolError,
)

from .answers import (
    HealthAnswer,
    ListAnswer,
    SearchAnswer,
    counts_of,
    detail,
    listed,
    search_answer,
)
from .datasets import Dataset, Library, Shelf
from .logs import log_search
from .manifests import DatasetError
from .settings import KnowledgeSettings
from .workers import tasks
from .workers.pool import OverdueError, Pool, Times, UnavailableError
from .workers.process import Begin
from .workers.worker import Worker, start_worker

T = TypeVar("T")

LONGEST_QUERY: Final = 1024
ATTEMPTS: Final = 2
"""Number of workers that a call may try; each has the timeout of the settings."""
MOST_COMPLETIONS: Final = 100
_PATIENCE: Final = 2.0
"""Seconds that a call waits for datasets that it can answer without."""


def pool_of(settings: KnowledgeSettings, log: logging.Logger) -> Pool:
    """Return the pool of these settings; it is not started."""
    begin = Begin(settings.worker_memory, settings.encoder_settings())

    async def start() -> Worker:
        return await start_worker(begin, log)

    return Pool(start, settings.workers, log, Times(attempt=settings.timeout))


@asynccontextmanager
async def workers_of(settings: KnowledgeSettings, log: logging.Logger) -> AsyncGenerator[Pool]:
    """Run the workers of these settings without a service, for commands."""
    pool = pool_of(settings, log)
    pool.start()
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(pool.serve)
        try:
            yield pool
        except Exception as error:  # noqa: BLE001  - raised below, outside of the task group
            raised = error
        group.cancel_scope.cancel()
    if raised is not None:
        raise raised


@asynccontextmanager
async def serving(
    settings: KnowledgeSettings, root: Path, log: logging.Logger
) -> AsyncGenerator[Service]:
    """Run a service: it reads the datasets and starts workers for them in the background.

    Args:
        root: The folder of the datasets.
    """
    async with anyio.create_task_group() as group:
        pool = pool_of(settings, log)
        library = Library((root, *settings.extra_roots), pool, settings.reload_seconds, log)
        service = Service(settings, pool, library, group, log)
        group.start_soon(pool.serve)
        group.start_soon(service.begin)
        try:
            yield service
        finally:
            group.cancel_scope.cancel()


class Service:
    """Answers the calls of the tools.

    Args:
        group: The task group in which folders are read.
    """

    def __init__(
        self,
        settings: KnowledgeSettings,
        pool: Pool,
        library: Library,
        group: TaskGroup,
        log: logging.Logger,
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._library = library
        self._group = group
        self._log = log
        self._began = perf_counter()

    async def begin(self) -> None:
        """Read the datasets, and log their numbers."""
        await self._library.current(self._group, float("inf"))
        counts = counts_of(await self._library.settled(None))
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

    async def shelf(self, dataset: str | None = None) -> Shelf:
        """Return the datasets as they are now.

        Args:
            dataset: Wait for this one if it is new. If it is unknown, wait for all, but shorter if
                others are ready.

        Raises:
            ApiError: They have not been read yet.
        """
        patience = self._settings.timeout
        current = await self._library.current(self._group, patience)
        if current is None:
            raise _unavailable(1)
        is_known = dataset in current.ready or dataset in current.opening
        if current.ready and not is_known:
            patience = min(patience, _PATIENCE)
        shelf = await self._library.settled(patience, dataset if is_known else None)
        if dataset in shelf.opening and not self._pool.processes:
            raise _unavailable(self._pool.next_start)
        if dataset in shelf.opening:
            raise ApiError(
                f"Dataset '{dataset}' is being opened. Try again in 1 s. {_available(shelf)}",
                retry_after=1,
            )
        return shelf

    async def search(self, dataset: str, query: str, top_k: int | None) -> SearchAnswer:
        """Return the passages of a dataset that answer a query, and log the search.

        Raises:
            InvalidInputError: The query is too short or too long. The caller logs that.
            ToolError: The search failed.
        """
        began = perf_counter()
        query = query.strip()
        _check(query)
        outcome, count = "cancelled", 0
        try:
            with self._in_time():
                shelf = await self.shelf(dataset)
                target = self._target(shelf, dataset)
                k = top_k or target.source.manifest.default_top_k
                results = await self._run(shelf, target, tasks.search, dataset, query, k)
            outcome, count = "ok", len(results)
        except (ToolError, ServiceError) as error:
            outcome = getattr(error, "error_type", ApiError.error_type)
            raise
        except Exception:
            outcome = "internal_error"
            raise
        finally:
            milliseconds = log_search(
                self._log, dataset, query, began=began, outcome=outcome, count=count
            )
        return search_answer(dataset, query, results, milliseconds)

    async def document(self, dataset: str, path: str) -> str:
        """Return a whole document, by the path that results cite.

        Raises:
            ToolError: The document does not exist, or the search failed.
        """
        with self._in_time():
            shelf = await self.shelf(dataset)
            target = self._target(shelf, dataset)
            text = await self._run(shelf, target, tasks.document, dataset, path)
        if text is None:
            raise NotFoundError(f"Dataset '{dataset}' has no document {path!r}.")
        return text

    async def datasets(self, *, include_errors: bool) -> ListAnswer:
        """List the datasets that are ready, or all."""
        shelf = await self.shelf()
        entries = shelf.entries if include_errors else shelf.ready.values()
        rows = sorted(map(listed, entries), key=lambda row: row["id"])
        return {"datasets": rows, "counts": counts_of(shelf)}

    async def dataset_ids(self, typed: str) -> list[str]:
        """Return the ids of datasets that begin with a text."""
        ready = (await self.shelf()).ready
        return sorted(dataset for dataset in ready if dataset.startswith(typed))

    async def document_paths(self, dataset: str, typed: str) -> list[str]:
        """Return the paths of documents that contain a text."""
        shelf = await self.shelf(dataset)
        if dataset not in shelf.ready:
            return []
        target = shelf.ready[dataset]
        return await self._run(shelf, target, tasks.paths, dataset, typed, MOST_COMPLETIONS)

    async def health(self) -> HealthAnswer:
        """Return the state of the datasets and the workers."""
        # Health is most useful while nothing starts, so it waits only briefly.
        current = await self._library.current(self._group, _PATIENCE)
        shelf = await self._library.settled(_PATIENCE)
        state = self._pool.state
        # No worker is needed before the first dataset.
        has_workers = state == "ready" or (current is not None and not self._pool.is_started)
        is_well = has_workers and not shelf.left_out and not shelf.opening
        return {
            "status": "failed" if self._pool.is_failing else "ok" if is_well else "degraded",
            "version": version("standards-mcp-knowledge"),
            "uptimeSeconds": round(perf_counter() - self._began, 1),
            "datasets": counts_of(shelf),
            "details": [detail(entry) for entry in shelf.entries],
            "worker": {
                "state": state,
                "processes": self._pool.processes,
                "restarts": self._pool.restarts,
            },
        }

    def _target(self, shelf: Shelf, dataset: str) -> Dataset:
        if dataset in shelf.ready:
            return shelf.ready[dataset]
        for entry in shelf.left_out:
            if entry.id == dataset and entry.kind == "worker" and self._pool.is_failing:
                raise _unavailable(self._pool.next_start)
            if entry.id == dataset:
                raise _not_available(shelf, dataset, entry.reason)
        raise NotFoundError(f"Dataset '{dataset}' not found. {_available(shelf)}")

    async def _run(
        self, shelf: Shelf, dataset: Dataset, function: Callable[..., T], *arguments: object
    ) -> T:
        try:
            return await self._pool.run(function, dataset.source.files, *arguments)
        except DatasetError as error:
            self._library.leave_out(dataset.source, error)
            raise _not_available(shelf, dataset.id, error.reason) from error
        except UnavailableError as error:
            raise _unavailable(error.seconds) from error
        except OverdueError as error:
            raise TimedOutError(
                f"Search of '{dataset.id}' took longer than {self._settings.timeout:g} s. "
                "Try again, with a shorter query."
            ) from error

    @contextmanager
    def _in_time(self) -> Generator[None]:
        """End a call before the host does, so that the error can name the cause."""
        seconds = ATTEMPTS * self._settings.timeout
        with anyio.move_on_after(seconds) as scope:
            yield
        if scope.cancelled_caught:
            raise TimedOutError(
                f"The workers did not answer within {seconds:g} s: they are busy or end. "
                "Try again later; plugins.knowledge.workers adds more."
            )


def _check(query: str) -> None:
    if not 1 <= len(query) <= LONGEST_QUERY:
        raise InvalidInputError(
            f"query has {len(query)} characters; it needs 1 to {LONGEST_QUERY:,}."
        )


def _available(shelf: Shelf, excluded: str = "") -> str:
    return f"Available datasets: {', '.join(sorted({*shelf.ready} - {excluded})) or 'none'}"


def _not_available(shelf: Shelf, dataset: str, reason: str) -> ApiError:
    return ApiError(f"Dataset '{dataset}' is not available: {reason}. {_available(shelf, dataset)}")


def _unavailable(seconds: float) -> ApiError:
    return ApiError(
        f"Knowledge search is unavailable. Try again in {seconds:g} s.", retry_after=seconds
    )
