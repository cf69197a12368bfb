"""Commands that list, search and check datasets, and the workers of commands."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import numpy as np
from anyio.from_thread import BlockingPortal, start_blocking_portal

from standards_mcp import ToolCaller
from standards_mcp.commands import Report, ask_tool, examples, print_json, reports

from .answers import Listed, listed
from .building import Vectors
from .datasets import Entry, look_into, shelved
from .documents import Hit
from .manifests import NAME, LeftOut, Manifest, Source, manifests_in, read_source
from .service import pool_of
from .settings import KnowledgeSettings
from .workers import tasks
from .workers.pool import Pool

T = TypeVar("T")
SECONDS: Final = 300.0
"""Deadline for one file, or for a few texts at a slow address."""

top_option: Final = click.option("--top", type=click.IntRange(1, 100), help="The most results.")


class Workers:
    """Worker processes for a command, which has no event loop of its own.

    Args:
        portal: The event loop of *pool*, in another thread.
    """

    def __init__(self, portal: BlockingPortal, pool: Pool) -> None:
        self._portal = portal
        self._pool = pool

    def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a function of `tasks`; it raises as `Pool.run` does."""

        async def run() -> T:
            return await self._pool.run(function, *arguments, seconds=SECONDS)

        return self._portal.call(run)

    def look_into(self, source: Source) -> Entry:
        """Open a dataset and search it, and return it, or the reason for leaving it out."""
        return self._portal.call(look_into, self._pool, source, tasks.try_out)

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function of `building.worker`."""
        return self.run(tasks.call, function, *arguments)

    def encode(self, texts: Sequence[str], model: str) -> Vectors:
        """Return a row of length 1 for each text; all workers share the texts."""
        share = -(-len(texts) // self._pool.size)
        parts = [texts[start : start + share] for start in range(0, len(texts), share)]
        encode = partial(self._pool.run, tasks.encode, seconds=SECONDS)
        futures = [self._portal.start_task_soon(encode, part, model) for part in parts]
        return np.vstack([future.result() for future in futures])


@contextmanager
def running_workers(settings: KnowledgeSettings, log: logging.Logger) -> Generator[Workers]:
    """Run the workers of these settings for a command."""
    with start_blocking_portal() as portal:
        pool = pool_of(settings, log)
        serving = portal.start_task_soon(pool.serve)
        try:
            yield Workers(portal, pool)
        finally:
            serving.cancel()


def dataset_commands(
    settings: KnowledgeSettings, root: Path, log: logging.Logger
) -> list[click.Command]:
    """Return the commands for datasets that exist."""
    return [_check_command(settings, root, log), _schema, _list_datasets, _search]


def hits_text(hits: Sequence[Hit]) -> str:
    """Return results, the best first, each with its file."""
    if not hits:
        return "No passage was found."
    return "\n\n".join(
        f"{rank}. {hit['path']}  {hit['title']}  ({hit['score']:.2f})\n   "
        + " ".join(hit["snippet"].split())
        for rank, hit in enumerate(hits, 1)
    )


@click.command("list")
@click.option("--errors", is_flag=True, help="Also list datasets with errors, with the reasons.")
@click.pass_obj
@reports
def _list_datasets(call: ToolCaller, *, errors: bool) -> Report:
    """List the datasets."""

    def text(answer: dict[str, Any]) -> str:
        return "\n".join(map(_dataset_text, answer["datasets"])) or "There are no datasets."

    return ask_tool(call, "knowledge.listDatasets", {"includeErrors": errors}, text)


@click.command("search", epilog=examples('knowledge search guide "How do I switch a tool off?"'))
@click.argument("dataset")
@click.argument("query")
@top_option
@click.pass_obj
@reports
def _search(call: ToolCaller, dataset: str, query: str, *, top: int | None) -> Report:
    """Search DATASET for passages that answer QUERY."""
    arguments = {"dataset": dataset, "query": query, "topK": top}
    return ask_tool(
        call, "knowledge.search", arguments, lambda answer: hits_text(answer["results"])
    )


@click.command("schema")
def _schema() -> None:
    """Print the JSON Schema of a manifest."""
    print_json(Manifest.model_json_schema())


def _check_command(settings: KnowledgeSettings, root: Path, log: logging.Logger) -> click.Command:
    @click.command("check", epilog=examples("knowledge check", "knowledge check guide"))
    @click.argument("names", nargs=-1, metavar="[ID or PATH]...")
    @reports
    def check(names: tuple[str, ...]) -> Report:
        """Check datasets by every rule: all, or the ones with an ID or at a PATH."""
        paths = _manifests(root, names)
        with running_workers(settings, log) as workers:
            checked = list(_checked(settings, root, paths, workers))
        entries = shelved(checked).entries
        text = "\n".join(map(_check_line, entries)) or f"There are no datasets in {root}."
        has_error = any(isinstance(entry, LeftOut) for entry in entries)
        return Report({"datasets": list(map(listed, entries))}, lambda: text, int(has_error))

    return check


def _checked(
    settings: KnowledgeSettings, root: Path, paths: Sequence[Path], workers: Workers
) -> Iterator[Entry]:
    in_root = manifests_in(root)
    for path in paths:
        # A dataset outside of the root is checked as if its own folder were a root.
        elsewhere = [] if path in in_root else [path.parent]
        source = read_source(path, [root, *settings.extra_roots, *elsewhere])
        yield source if isinstance(source, LeftOut) else workers.look_into(source)


def _dataset_text(entry: Listed) -> str:
    if "error" in entry:
        return f"{entry['id']}: left out\n   {entry['error']}"
    head = f"{entry['id']}: {entry['name']}, {entry['documents']} passages"
    return f"{head}\n   {entry['description']}"


def _check_line(entry: Entry) -> str:
    result = entry.reason if isinstance(entry, LeftOut) else "good"
    return f"{entry.id} ({entry.path}): {result}"


def _manifests(root: Path, names: Sequence[str]) -> list[Path]:
    """Return the manifests of ids and paths; without names, all manifests of the root."""
    in_root = manifests_in(root)
    if not names:
        return in_root
    manifests: list[Path] = []
    for name in names:
        path = Path(name)
        by_id = [manifest for manifest in in_root if _id_of(manifest, root) == name]
        if by_id:
            manifests += by_id
        elif os.path.isfile(path) or os.path.isfile(path / NAME):  # noqa: PTH113  - never raises
            manifests.append(path if path.is_file() else path / NAME)
        else:
            raise click.ClickException(f"{name} is neither the id of a dataset nor its path.")
    return list({os.path.realpath(path): path for path in manifests}.values())


def _id_of(manifest: Path, root: Path) -> str:
    source = read_source(manifest, [root])
    return source.id if isinstance(source, LeftOut) else source.manifest.id
