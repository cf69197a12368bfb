"""Commands that list, search and check datasets, and the worker processes of commands."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from anyio.from_thread import start_blocking_portal

from standards_mcp import ToolCaller
from standards_mcp.commands import Report, ask_tool, examples, print_json, reports

from .answers import Listed, to_listed
from .building import BuildError
from .datasets import Entry, make_snapshot, open_and_check
from .documents import Hit
from .manifests import (
    MANIFEST_NAME,
    DatasetError,
    Excluded,
    Manifest,
    Source,
    manifests_in,
    read_source,
)
from .workers.blocking import Workers
from .workers.pool import OverdueError, Pool, UnavailableError

if TYPE_CHECKING:
    from .plugin import KnowledgePlugin

top_option: Final = click.option("--top", type=click.IntRange(1, 100), help="The most results.")


@contextmanager
def running_workers(plugin: KnowledgePlugin) -> Generator[Workers]:
    """Run the workers of the plugin's settings for a command.

    Raises:
        BuildError: A worker ends or takes too long, or a text encoder is missing.
    """
    with start_blocking_portal() as portal:
        pool = Pool(plugin.settings, plugin.context.log)
        serve_task = portal.start_task_soon(pool.serve)
        try:
            yield Workers(pool, portal)
        except DatasetError as error:
            raise BuildError(error.reason) from error
        except (UnavailableError, OverdueError) as error:
            raise BuildError(f"a worker process failed: {error}") from error
        finally:
            serve_task.cancel()


def dataset_commands(plugin: KnowledgePlugin) -> list[click.Command]:
    """Return the commands ``check``, ``schema``, ``list`` and ``search``."""
    return [_check_command(plugin), _schema, _list_datasets, _search]


def hits_text(hits: Sequence[Hit]) -> str:
    """Format search results as text, each with its file."""
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


def _check_command(plugin: KnowledgePlugin) -> click.Command:
    @click.command("check", epilog=examples("knowledge check", "knowledge check guide"))
    @click.argument("names", nargs=-1, metavar="[ID or PATH]...")
    @reports
    def check(names: tuple[str, ...]) -> Report:
        """Check datasets by every rule: all, or the ones with an ID or at a PATH."""
        sources = _select_sources(plugin, names)
        with running_workers(plugin) as workers:
            checked = [
                source
                if isinstance(source, Excluded)
                else workers.portal.call(open_and_check, workers.pool, source, True)
                for source in sources
            ]
        entries = make_snapshot(checked).entries
        text = "\n".join(map(_check_line, entries)) or f"There are no datasets in {plugin.root}."
        has_error = any(isinstance(entry, Excluded) for entry in entries)
        return Report({"datasets": list(map(to_listed, entries))}, lambda: text, int(has_error))

    return check


def _dataset_text(entry: Listed) -> str:
    if "error" in entry:
        return f"{entry['id']}: left out\n   {entry['error']}"
    head = f"{entry['id']}: {entry['name']}, {entry['documents']} passages"
    return f"{head}\n   {entry['description']}"


def _check_line(entry: Entry) -> str:
    result = entry.reason if isinstance(entry, Excluded) else "good"
    return f"{entry.id} ({entry.path}): {result}"


def _select_sources(plugin: KnowledgePlugin, names: Sequence[str]) -> list[Source | Excluded]:
    """Return the datasets with these ids or paths; without names, all datasets in the root."""
    roots = [plugin.root, *plugin.settings.extra_roots]
    in_root = {path: read_source(path, roots) for path in manifests_in(plugin.root)}
    if not names:
        return list(in_root.values())
    chosen: dict[str, Source | Excluded] = {}
    for name in names:
        # Path.is_file may raise.
        path = Path(name) if os.path.isfile(name) else Path(name, MANIFEST_NAME)  # noqa: PTH113
        sources = [source for source in in_root.values() if source.id == name]
        if not sources and os.path.isfile(path):  # noqa: PTH113
            # A dataset outside of the root is checked as if its own folder were a root.
            sources = [in_root.get(path) or read_source(path, [*roots, path.parent])]
        if not sources:
            raise click.ClickException(f"{name} is neither the id of a dataset nor its path.")
        chosen |= {os.path.realpath(source.path): source for source in sources}
    return list(chosen.values())
