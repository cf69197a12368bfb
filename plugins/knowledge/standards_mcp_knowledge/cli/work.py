"""The heavy work of a build, done in workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import numpy as np

from standards_mcp_knowledge.building import (
    BuildError,
    BuildOptions,
    BuildReport,
    Document,
    DocumentError,
    Vectors,
    build_dataset,
    worker,
)
from standards_mcp_knowledge.errors import DatasetError
from standards_mcp_knowledge.workers import tasks
from standards_mcp_knowledge.workers.pool import OverdueError, Pool, UnavailableError

T = TypeVar("T")
_SECONDS: Final = 300.0
"""For one file, or for a few texts at a slow address."""


class PoolWork:
    """`building.Work` on workers. It is used in a thread beside the event loop.

    Args:
        model: The name of the encoder's model.
    """

    def __init__(self, pool: Pool, model: str) -> None:
        self._pool = pool
        self._model = model

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row of length 1 for each text; all workers share the texts."""
        return anyio.from_thread.run(self._encode, texts)

    def read_pdf(self, path: Path) -> Document:
        """Read a PDF file."""
        return self._read(worker.read_pdf, path)

    def read_docx(self, path: Path) -> Document:
        """Read a Word document."""
        return self._read(worker.read_docx, path)

    def read_vectors(self, path: Path) -> Vectors:
        """Return the vectors of an index that was written before."""
        try:
            return self._run(worker.read_vectors, path)
        except (UnavailableError, OverdueError) as error:
            raise OSError("it ends the process that reads it, or takes too long") from error

    def write_index(self, vectors: Vectors, path: Path) -> None:
        """Write a new index."""
        self._run(worker.write_index, vectors, path)

    def _read(self, function: Callable[[Path], Document], path: Path) -> Document:
        try:
            return self._run(function, path)
        except UnavailableError:
            raise DocumentError("ends the process that reads it") from None
        except OverdueError:
            raise DocumentError(f"takes longer than {_SECONDS:g} s to read") from None

    def _run(self, function: Callable[..., T], *arguments: object) -> T:
        async def run() -> T:
            return await self._pool.run(tasks.call, function, *arguments, seconds=_SECONDS)

        return anyio.from_thread.run(run)

    async def _encode(self, texts: Sequence[str]) -> Vectors:
        share = -(-len(texts) // self._pool.size)
        parts = [texts[start : start + share] for start in range(0, len(texts), share)]
        found: list[Vectors | None] = [None] * len(parts)
        errors: list[Exception] = []

        async def encode(position: int) -> None:
            try:
                found[position] = await self._pool.run(
                    tasks.encode, parts[position], self._model, seconds=_SECONDS
                )
            except Exception as error:  # noqa: BLE001  - the first is raised below, not a group
                errors.append(error)

        async with anyio.create_task_group() as group:
            for position in range(len(parts)):
                group.start_soon(encode, position)
        if errors:
            raise errors[0]
        return np.vstack([each for each in found if each is not None])


async def build(
    pool: Pool,
    folder: Path,
    out: Path,
    options: BuildOptions,
    progress: Callable[[int, int], None],
    others: Sequence[Path],
) -> BuildReport:
    """Make a dataset of a folder with these workers.

    Args:
        others: Folders of datasets whose vectors can be reused.

    Raises:
        BuildError: It cannot be made.
        ServiceError: The encoder fails.
    """
    work = PoolWork(pool, options.model)
    try:
        return await anyio.to_thread.run_sync(
            build_dataset, folder, out, options, work, progress, others
        )
    except DatasetError as error:
        raise BuildError(error.reason) from error
    except (UnavailableError, OverdueError) as error:
        raise BuildError("the workers cannot encode the texts; see the log for why") from error
