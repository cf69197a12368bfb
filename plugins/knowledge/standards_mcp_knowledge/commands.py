"""Commands that list, search and check datasets, and text for terminals."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import click

from standards_mcp import ToolCaller
from standards_mcp.commands import (
    examples,
    json_option,
    print_answer,
    print_json,
    print_result,
)

from .answers import Listed, listed
from .datasets import Entry, LeftOut, look_into, manifests_in, read_source, shelved
from .documents import Hit
from .manifests import NAME, Manifest
from .service import workers_of
from .settings import KnowledgeSettings
from .workers import tasks

top_option: Final = click.option("--top", type=click.IntRange(1, 100), help="The most results.")


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
@json_option
@click.pass_context
def _list_datasets(context: click.Context, *, errors: bool, as_json: bool) -> None:
    """List the datasets."""
    call: ToolCaller = context.obj
    answer = call("knowledge.listDatasets", {"includeErrors": errors})

    def text(facts: dict[str, Any]) -> str:
        return "\n".join(map(_dataset_text, facts["datasets"])) or "There are no datasets."

    print_answer(answer, text, as_json=as_json)
    context.exit(int(answer.is_error))


@click.command("search", epilog=examples('knowledge search guide "How do I switch a tool off?"'))
@click.argument("dataset")
@click.argument("query")
@top_option
@json_option
@click.pass_context
def _search(
    context: click.Context, dataset: str, query: str, *, top: int | None, as_json: bool
) -> None:
    """Search DATASET for passages that answer QUERY."""
    call: ToolCaller = context.obj
    limit = {} if top is None else {"topK": top}
    answer = call("knowledge.search", {"dataset": dataset, "query": query, **limit})
    print_answer(answer, lambda facts: hits_text(facts["results"]), as_json=as_json)
    context.exit(int(answer.is_error))


@click.command("schema")
def _schema() -> None:
    """Print the JSON Schema of a manifest."""
    print_json(Manifest.model_json_schema())


def _check_command(settings: KnowledgeSettings, root: Path, log: logging.Logger) -> click.Command:
    @click.command("check", epilog=examples("knowledge check", "knowledge check guide"))
    @click.argument("names", nargs=-1, metavar="[ID or PATH]...")
    @json_option
    @click.pass_context
    def check(context: click.Context, names: tuple[str, ...], *, as_json: bool) -> None:
        """Check datasets by every rule: all, or the ones with an ID or at a PATH."""
        paths = _manifests(root, names)
        entries = anyio.run(partial(_entries, settings, root, paths, log))
        answer = {"datasets": [listed(entry) for entry in entries]}
        text = "\n".join(map(_check_line, entries)) or f"There are no datasets in {root}."
        print_result(answer, lambda: text, as_json=as_json)
        context.exit(int(any(isinstance(entry, LeftOut) for entry in entries)))

    return check


def _dataset_text(entry: Listed) -> str:
    if "error" in entry:
        return f"{entry['id']}: left out\n   {entry['error']}"
    head = f"{entry['id']}: {entry['name']}, {entry['documents']} passages"
    return f"{head}\n   {entry['description']}"


def _check_line(entry: Entry) -> str:
    if isinstance(entry, LeftOut):
        return f"{entry.id} ({entry.path}): {entry.reason}"
    return f"{entry.id} ({entry.source.path}): good"


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


async def _entries(
    settings: KnowledgeSettings, root: Path, paths: Sequence[Path], log: logging.Logger
) -> list[Entry]:
    entries: list[Entry] = []
    in_root = manifests_in(root)
    async with workers_of(settings, log) as pool:
        for path in paths:
            # A dataset outside of the root is checked as if its own folder were a root.
            elsewhere = [] if path in in_root else [path.parent]
            source = read_source(path, [root, *settings.extra_roots, *elsewhere])
            if isinstance(source, LeftOut):
                entries.append(source)
            else:
                entries.append(await look_into(pool, source, tasks.try_out))
    return shelved(entries).entries
