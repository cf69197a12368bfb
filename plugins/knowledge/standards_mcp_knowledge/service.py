"""The datasets and the workers together, as the tools and the commands use them."""

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
from .datasets import Dataset, Shelf
from .errors import DatasetError
from .library import Library
from .logs import log_search
from .settings import KnowledgeSettings
from .workers import tasks
from .workers.messages import Begin
from .workers.pool import OverdueError, Pool, Times, UnavailableError
from .workers.worker import Worker, start_worker

T = TypeVar("T")

LONGEST_QUERY: Final = 1024
ATTEMPTS: Final = 2
"""How often a worker is asked at most; each may take the timeout of the settings."""
MOST_COMPLETIONS: Final = 100
_PATIENCE: Final = 2.0
"""Seconds that a call waits for datasets which it can do without."""


def pool_of(settings: KnowledgeSettings, log: logging.Logger) -> Pool:
    """Return the workers of these settings, not started."""
    begin = Begin(settings.worker_memory, settings.encoder_settings())

    async def start() -> Worker:
        return await start_worker(begin, log)

    return Pool(start, settings.workers, log, Times(attempt=settings.timeout))


@asynccontextmanager
async def workers_of(settings: KnowledgeSettings, log: logging.Logger) -> AsyncGenerator[Pool]:
    """Run the workers of these settings alone, for commands."""
    pool = pool_of(settings, log)
    pool.start()
    raised: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(pool.serve)
        try:
            yield pool
        except Exception as error:  # noqa: BLE001  - raised below, and not in a group
            raised = error
        group.cancel_scope.cancel()
    if raised is not None:
        raise raised


@asynccontextmanager
async def serving(
    settings: KnowledgeSettings, root: Path, log: logging.Logger
) -> AsyncGenerator[Service]:
    """Look for datasets, start the workers if there is one, and wait for neither.

    Args:
        root: The folder with the datasets.
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
    """Answers what the tools are asked.

    Args:
        group: Where the folders are looked at.
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
        """Find the datasets, and tell the log what there is."""
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
            dataset: Wait for this one if it is new. If there is none of that name, wait for all,
                but not so long if others are known.

        Raises:
            ApiError: They are not known yet.
        """
        patience = self._settings.timeout
        known = await self._library.current(self._group, patience)
        if known is None:
            raise _unavailable(1)
        is_one = dataset in known.ready or dataset in known.opening
        if known.ready and not is_one:
            patience = min(patience, _PATIENCE)
        shelf = await self._library.settled(patience, dataset if is_one else None)
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
            ToolError: There are none, for a reason that its message names.
        """
        began = perf_counter()
        query = query.strip()
        _check(query)
        outcome, count = "cancelled", 0
        try:
            with self._in_time():
                shelf = await self.shelf(dataset)
                found = self._found(shelf, dataset)
                k = top_k or found.source.manifest.default_top_k
                results = await self._asked(shelf, found, tasks.search, dataset, query, k)
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
            ToolError: There is none.
        """
        with self._in_time():
            shelf = await self.shelf(dataset)
            found = self._found(shelf, dataset)
            text = await self._asked(shelf, found, tasks.document, dataset, path)
        if text is None:
            raise NotFoundError(f"Dataset '{dataset}' has no document {path!r}.")
        return text

    async def datasets(self, *, include_errors: bool) -> ListAnswer:
        """List the datasets: those that are served, or all."""
        shelf = await self.shelf()
        entries = shelf.entries if include_errors else shelf.ready.values()
        known = sorted((listed(each) for each in entries), key=lambda each: each["id"])
        return {"datasets": known, "counts": counts_of(shelf)}

    async def dataset_ids(self, typed: str) -> list[str]:
        """Return the ids of datasets that begin with a text."""
        return sorted(each for each in (await self.shelf()).ready if each.startswith(typed))

    async def document_paths(self, dataset: str, typed: str) -> list[str]:
        """Return paths of documents that a text begins or is in."""
        shelf = await self.shelf(dataset)
        if dataset not in shelf.ready:
            return []
        found = shelf.ready[dataset]
        return await self._asked(shelf, found, tasks.paths, dataset, typed, MOST_COMPLETIONS)

    async def health(self) -> HealthAnswer:
        """Say how the datasets and the workers are."""
        # It is asked most when nothing starts, so it does not wait for that.
        known = await self._library.current(self._group, _PATIENCE)
        shelf = await self._library.settled(_PATIENCE)
        state = self._pool.state
        # No worker is needed before the first dataset.
        has_workers = state == "ready" or (known is not None and not self._pool.is_started)
        is_well = has_workers and not shelf.left_out and not shelf.opening
        return {
            "status": "failed" if self._pool.is_failing else "ok" if is_well else "degraded",
            "version": version("standards-mcp-knowledge"),
            "uptimeSeconds": round(perf_counter() - self._began, 1),
            "datasets": counts_of(shelf),
            "details": [detail(each) for each in shelf.entries],
            "worker": {
                "state": state,
                "processes": self._pool.processes,
                "restarts": self._pool.restarts,
            },
        }

    def _found(self, shelf: Shelf, dataset: str) -> Dataset:
        if dataset in shelf.ready:
            return shelf.ready[dataset]
        for each in shelf.left_out:
            if each.id == dataset and each.kind == "worker" and self._pool.is_failing:
                raise _unavailable(self._pool.next_start)
            if each.id == dataset:
                raise _not_available(shelf, dataset, each.reason)
        raise NotFoundError(f"Dataset '{dataset}' not found. {_available(shelf)}")

    async def _asked(
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
        """End a call before the host does, which cannot say for what it waited."""
        seconds = ATTEMPTS * self._settings.timeout
        with anyio.move_on_after(seconds) as scope:
            yield
        if scope.cancelled_caught:
            raise TimedOutError(
                f"There was no answer within {seconds:g} s: the workers are busy, or end. "
                "Try again later; plugins.knowledge.workers adds more."
            )


def _check(query: str) -> None:
    if not 1 <= len(query) <= LONGEST_QUERY:
        raise InvalidInputError(
            f"query has {len(query)} characters; it needs 1 to {LONGEST_QUERY:,}."
        )


def _available(shelf: Shelf, but: str = "") -> str:
    return f"Available datasets: {', '.join(sorted({*shelf.ready} - {but})) or 'none'}"


def _not_available(shelf: Shelf, dataset: str, reason: str) -> ApiError:
    return ApiError(f"Dataset '{dataset}' is not available: {reason}. {_available(shelf, dataset)}")


def _unavailable(seconds: float) -> ApiError:
    return ApiError(
        f"Knowledge search is unavailable. Try again in {seconds:g} s.", retry_after=seconds
    )
