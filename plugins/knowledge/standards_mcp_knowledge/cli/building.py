"""Commands that make datasets of folders."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path
from time import perf_counter

import anyio
import click

from standards_mcp.commands import examples, json_option, print_result, progress_bar
from standards_mcp_knowledge.answers import SearchAnswer, search_answer
from standards_mcp_knowledge.building import BuildError, BuildOptions, BuildReport
from standards_mcp_knowledge.datasets import LeftOut, manifests_in, read_source
from standards_mcp_knowledge.encoders import DEFAULT_MODEL
from standards_mcp_knowledge.errors import DatasetError
from standards_mcp_knowledge.manifests import NAME
from standards_mcp_knowledge.service import LONGEST_QUERY, workers_of
from standards_mcp_knowledge.settings import KnowledgeSettings
from standards_mcp_knowledge.workers import tasks
from standards_mcp_knowledge.workers.pool import OverdueError, Pool, UnavailableError

from . import showing
from .work import build

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_RESULTS = 5


def build_command(
    settings: KnowledgeSettings, root: Path, tried: Path, log: logging.Logger
) -> click.Command:
    """Return the command ``build``.

    Args:
        root: Where it puts datasets.
        tried: Where ``try`` keeps its datasets, whose vectors are reused.
    """

    @click.command(
        "build",
        epilog=examples("knowledge build docs --id guide --name Guide --description Manual"),
    )
    @click.argument("folder", type=_FOLDER)
    @click.option("--id", "id_", required=True, help="What searches name the dataset.")
    @click.option("--name", required=True, help="What people call it.")
    @click.option("--description", required=True, help="What it is about.")
    @click.option("--out", type=click.Path(path_type=Path), help="The dataset's own folder.")
    @click.option("--model", default=DEFAULT_MODEL, help="The text encoder.", show_default=True)
    @click.option("--chunk-words", default=200, show_default=True, help="Words of a passage.")
    @click.option("--overlap-words", default=30, show_default=True, help="Words it repeats.")
    @click.option("--include", multiple=True, metavar="GLOB", help="Only such files.")
    @json_option
    def build_dataset(
        folder: Path, id_: str, out: Path | None, *, as_json: bool, **options: object
    ) -> None:
        """Make a dataset of the documents in FOLDER, or bring it up to date."""
        wanted = _options(id=id_, **options)
        place = out or root / wanted.id

        async def make() -> BuildReport:
            async with workers_of(settings, log) as pool:
                with progress_bar("Encoding", is_shown=not as_json) as progress:
                    others = [tried / options_for(folder).id]
                    return await build(pool, folder, place, wanted, progress, others)

        built = anyio.run(make)
        print_result(showing.report_json(built), lambda: showing.report(built), as_json=as_json)
        _check_not_empty(built, folder)

    return build_dataset


def try_command(
    settings: KnowledgeSettings, root: Path, tried: Path, log: logging.Logger
) -> click.Command:
    """Return the command ``try``.

    Args:
        root: Where ``build`` puts datasets, whose vectors are reused.
        tried: Where its datasets are kept.
    """

    @click.command(
        "try", epilog=examples('knowledge try docs "How do I switch a single tool off?"')
    )
    @click.argument("folder", type=_FOLDER)
    @click.argument("question")
    @showing.top
    @json_option
    def try_folder(folder: Path, question: str, *, top: int | None, as_json: bool) -> None:
        """Answer QUESTION with passages of the documents in FOLDER."""
        if not 1 <= len(question.strip()) <= LONGEST_QUERY:
            raise click.UsageError(f"A question has 1 to {LONGEST_QUERY:,} characters.")
        wanted = options_for(folder)

        async def answer() -> SearchAnswer:
            async with workers_of(settings, log) as pool:
                with progress_bar("Encoding", is_shown=not as_json) as progress:
                    others = [each.parent for each in manifests_in(root) if each.name == NAME]
                    built = await build(pool, folder, tried / wanted.id, wanted, progress, others)
                _check_not_empty(built, folder)
                return await _search(pool, tried / wanted.id, question.strip(), top or _RESULTS)

        found = anyio.run(answer)
        print_result(found, lambda: showing.hits(found["results"]), as_json=as_json)

    return try_folder


def _check_not_empty(built: BuildReport, folder: Path) -> None:
    if not built.chunks:
        left_out = "; ".join(f"{each.path}: {each.reason}" for each in built.skipped[:_RESULTS])
        why = f" ({left_out})" if left_out else ""
        raise BuildError(f"{folder} has no documents that can be read{why}")


def options_for(folder: Path) -> BuildOptions:
    """Return how a folder that has no dataset of its own is built: its id is its path's."""
    path = folder.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")[:40] or "folder"
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = path.name.strip() or "Folder"
    return BuildOptions(id=f"{slug}-{digest}", name=name[:128], description=f"Tried: {name}"[:512])


async def _search(pool: Pool, folder: Path, question: str, most: int) -> SearchAnswer:
    source = read_source(folder / NAME, [folder])
    if isinstance(source, LeftOut):
        raise BuildError(source.reason)
    began = perf_counter()
    name = source.manifest.id
    try:
        found = await pool.run(tasks.search, source.files, name, question, most)
    except DatasetError as error:
        raise BuildError(error.reason) from error
    except (UnavailableError, OverdueError) as error:
        raise BuildError("the workers cannot search; see the log for why") from error
    return search_answer(name, question, found, round((perf_counter() - began) * 1000, 1))


def _options(**values: object) -> BuildOptions:
    try:
        return BuildOptions(**values)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error
