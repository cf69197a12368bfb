"""The commands `build` and `try`, and their heavy work in worker processes."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import click
import numpy as np

from standards_mcp.commands import examples, json_option, print_result, progress_bar

from .answers import SearchAnswer, search_answer
from .building import (
    BuildError,
    BuildOptions,
    BuildReport,
    Document,
    DocumentError,
    Vectors,
    build_dataset,
    worker,
)
from .commands import hits_text, top_option
from .datasets import LeftOut, manifests_in, read_source
from .encoders import DEFAULT_MODEL
from .manifests import NAME, DatasetError
from .service import LONGEST_QUERY, workers_of
from .settings import KnowledgeSettings
from .workers import tasks
from .workers.pool import OverdueError, Pool, UnavailableError

T = TypeVar("T")
_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_RESULTS: Final = 5
_SECONDS: Final = 300.0
"""Deadline for one file, or for a few texts at a slow address."""


def build_commands(
    settings: KnowledgeSettings, root: Path, tried: Path, log: logging.Logger
) -> list[click.Command]:
    """Return the commands ``try`` and ``build``.

    Args:
        root: The folder of the datasets of ``build``.
        tried: The folder of the datasets of ``try``. Each command reuses the other's vectors.
    """
    return [
        _try_command(settings, root, tried, log),
        _build_command(settings, root, tried, log),
    ]


def _build_command(
    settings: KnowledgeSettings, root: Path, tried: Path, log: logging.Logger
) -> click.Command:
    @click.command(
        "build",
        epilog=examples("knowledge build docs --id guide --name Guide --description Manual"),
    )
    @click.argument("folder", type=_FOLDER)
    @click.option("--id", "id_", required=True, help="The id of the dataset in searches.")
    @click.option("--name", required=True, help="The name of the dataset for people.")
    @click.option("--description", required=True, help="The subject of the dataset.")
    @click.option("--out", type=click.Path(path_type=Path), help="The dataset's own folder.")
    @click.option("--model", default=DEFAULT_MODEL, help="The text encoder.", show_default=True)
    @click.option("--chunk-words", default=200, show_default=True, help="Words of a passage.")
    @click.option("--overlap-words", default=30, show_default=True, help="Words it repeats.")
    @click.option("--include", multiple=True, metavar="GLOB", help="Only such files.")
    @json_option
    def build(folder: Path, id_: str, out: Path | None, *, as_json: bool, **values: object) -> None:
        """Make a dataset of the documents in FOLDER, or bring it up to date."""
        options = _options(id=id_, **values)
        target = out or root / options.id

        async def make() -> BuildReport:
            async with workers_of(settings, log) as pool:
                with progress_bar("Encoding", is_shown=not as_json) as progress:
                    reusable = [tried / _options_for(folder).id]
                    return await _build(pool, folder, target, options, progress, reusable)

        report = anyio.run(make)
        print_result(_report_json(report), lambda: _report_text(report), as_json=as_json)
        _check_not_empty(report, folder)

    return build


def _try_command(
    settings: KnowledgeSettings, root: Path, tried: Path, log: logging.Logger
) -> click.Command:
    @click.command(
        "try", epilog=examples('knowledge try docs "How do I switch a single tool off?"')
    )
    @click.argument("folder", type=_FOLDER)
    @click.argument("question")
    @top_option
    @json_option
    def try_folder(folder: Path, question: str, *, top: int | None, as_json: bool) -> None:
        """Answer QUESTION with passages of the documents in FOLDER."""
        if not 1 <= len(question.strip()) <= LONGEST_QUERY:
            raise click.UsageError(f"A question has 1 to {LONGEST_QUERY:,} characters.")
        options = _options_for(folder)
        target = tried / options.id

        async def ask() -> SearchAnswer:
            async with workers_of(settings, log) as pool:
                with progress_bar("Encoding", is_shown=not as_json) as progress:
                    reusable = [path.parent for path in manifests_in(root) if path.name == NAME]
                    report = await _build(pool, folder, target, options, progress, reusable)
                _check_not_empty(report, folder)
                return await _search(pool, target, question.strip(), top or _RESULTS)

        answer = anyio.run(ask)
        print_result(answer, lambda: hits_text(answer["results"]), as_json=as_json)

    return try_folder


def _options(**values: object) -> BuildOptions:
    try:
        return BuildOptions(**values)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error


def _options_for(folder: Path) -> BuildOptions:
    """Return the options of ``try``, with an id that no other folder has."""
    path = folder.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")[:40] or "folder"
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = path.name.strip() or "Folder"
    return BuildOptions(id=f"{slug}-{digest}", name=name[:128], description=f"Tried: {name}"[:512])


def _check_not_empty(report: BuildReport, folder: Path) -> None:
    if not report.chunks:
        reasons = "; ".join(f"{skip.path}: {skip.reason}" for skip in report.skipped[:_RESULTS])
        cause = f" ({reasons})" if reasons else ""
        raise BuildError(f"{folder} has no documents that can be read{cause}")


def _report_text(report: BuildReport) -> str:
    counts = f"{report.chunks} passages of {report.files} files, {report.unchanged} unchanged"
    skipped = (f"skipped {skip.path}: {skip.reason}" for skip in report.skipped)
    return "\n".join([f"{report.id}: {counts}, in {report.path}", *skipped])


def _report_json(report: BuildReport) -> Mapping[str, Any]:
    return {
        "id": report.id,
        "path": str(report.path),
        "files": report.files,
        "chunks": report.chunks,
        "unchanged": report.unchanged,
        "skipped": [{"path": skip.path, "reason": skip.reason} for skip in report.skipped],
    }


async def _search(pool: Pool, folder: Path, question: str, limit: int) -> SearchAnswer:
    source = read_source(folder / NAME, [folder])
    if isinstance(source, LeftOut):
        raise BuildError(source.reason)
    began = perf_counter()
    name = source.manifest.id
    try:
        hits = await pool.run(tasks.search, source.files, name, question, limit)
    except DatasetError as error:
        raise BuildError(error.reason) from error
    except (UnavailableError, OverdueError) as error:
        raise BuildError("the workers cannot search; the log has the cause") from error
    return search_answer(name, question, hits, round((perf_counter() - began) * 1000, 1))


async def _build(
    pool: Pool,
    folder: Path,
    out: Path,
    options: BuildOptions,
    progress: Callable[[int, int], None],
    reusable: Sequence[Path],
) -> BuildReport:
    """Make or update a dataset with the workers of a pool.

    Args:
        reusable: Folders of datasets whose vectors can be reused.

    Raises:
        BuildError: It cannot be made.
        ServiceError: The encoder fails.
    """
    work = PoolWork(pool, options.model)
    try:
        return await anyio.to_thread.run_sync(
            build_dataset, folder, out, options, work, progress, reusable
        )
    except DatasetError as error:
        raise BuildError(error.reason) from error
    except (UnavailableError, OverdueError) as error:
        raise BuildError("the workers cannot encode the texts; the log has the cause") from error


class PoolWork:
    """`building.Work` on a pool of workers. A thread outside of the event loop uses it.

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
        """Return the vectors of an index of an earlier build."""
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
        vectors: list[Vectors | None] = [None] * len(parts)
        errors: list[Exception] = []

        async def encode(position: int) -> None:
            try:
                vectors[position] = await self._pool.run(
                    tasks.encode, parts[position], self._model, seconds=_SECONDS
                )
            except Exception as error:  # noqa: BLE001  - the first is raised below, without a group
                errors.append(error)

        async with anyio.create_task_group() as group:
            for position in range(len(parts)):
                group.start_soon(encode, position)
        if errors:
            raise errors[0]
        return np.vstack([rows for rows in vectors if rows is not None])
