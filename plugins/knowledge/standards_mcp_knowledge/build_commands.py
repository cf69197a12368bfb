"""The commands `build` and `try`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import click

from standards_mcp.commands import Report, examples, progress_bar, reports

from .answers import SearchAnswer, search_answer
from .building import BuildError, BuildOptions, BuildReport, build_dataset
from .building.dataset_files import INDEX, METADATA
from .commands import hits_text, running_workers, top_option
from .encoders import DEFAULT_MODEL
from .manifests import (
    MANIFEST_NAME,
    DatasetError,
    Excluded,
    Manifest,
    manifests_in,
    printable_line,
    read_source,
)
from .service import LONGEST_QUERY
from .workers import tasks
from .workers.blocking import Workers

if TYPE_CHECKING:
    from .plugin import KnowledgePlugin

_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_DEFAULT_RESULTS: Final = 5


def build_commands(plugin: KnowledgePlugin) -> list[click.Command]:
    """Return the commands ``try`` and ``build``. Each reuses the other's vectors."""
    return [_try_command(plugin), _build_command(plugin)]


def _build_command(plugin: KnowledgePlugin) -> click.Command:
    @click.command(
        "build",
        epilog=examples("knowledge build docs --id guide --name Guide --description Manual"),
    )
    @click.argument("folder", type=_FOLDER)
    @click.option("--id", "id_", required=True, help="The id of the dataset in searches.")
    @click.option("--name", required=True, help="The name of the dataset for people.")
    @click.option("--description", required=True, help="The subject of the dataset.")
    @click.option("--out", type=click.Path(path_type=Path), help="The folder; default: root/ID.")
    @click.option("--model", default=DEFAULT_MODEL, help="The text encoder.", show_default=True)
    @click.option("--chunk-words", default=200, show_default=True, help="Words of a passage.")
    @click.option("--overlap-words", default=30, show_default=True, help="Words the next repeats.")
    @click.option("--include", multiple=True, metavar="GLOB", help="Only matching files.")
    @reports
    def build(
        folder: Path, id_: str, name: str, description: str, out: Path | None, **more_options: Any
    ) -> Report:
        """Make a dataset of the documents in FOLDER, or bring it up to date."""
        try:
            options = BuildOptions(manifest=_manifest(id_, name, description), **more_options)
        except (DatasetError, ValueError) as error:
            raise click.UsageError(str(error)) from error
        reusable = [_try_folder(plugin, folder)]
        with running_workers(plugin) as workers, progress_bar("Encoding") as progress:
            target = out or plugin.root / id_
            report = build_dataset(folder, target, options, workers, progress, reusable)
        _check_not_empty(report, folder)
        return Report(asdict(report), lambda: _report_text(report))

    return build


def _try_command(plugin: KnowledgePlugin) -> click.Command:
    @click.command(
        "try", epilog=examples('knowledge try docs "How do I switch a single tool off?"')
    )
    @click.argument("folder", type=_FOLDER)
    @click.argument("question")
    @top_option
    @reports
    def try_folder(folder: Path, question: str, *, top: int | None) -> Report:
        """Answer QUESTION with passages of the documents in FOLDER."""
        if not 1 <= len(question.strip()) <= LONGEST_QUERY:
            raise click.UsageError(f"A question has 1 to {LONGEST_QUERY:,} characters.")
        options = BuildOptions(manifest=_manifest_for(folder))
        target = _try_folder(plugin, folder)
        paths = manifests_in(plugin.root)
        reusable = [path.parent for path in paths if path.name == MANIFEST_NAME]
        with running_workers(plugin) as workers:
            with progress_bar("Encoding") as progress:
                report = build_dataset(folder, target, options, workers, progress, reusable)
            _check_not_empty(report, folder)
            answer = _search(workers, target, question.strip(), top or _DEFAULT_RESULTS)
        return Report(answer, lambda: hits_text(answer["results"]))

    return try_folder


def _manifest(id_: str, name: str, description: str) -> Manifest:
    """Return the manifest of a dataset to build.

    Raises:
        DatasetError: A value is invalid.
    """
    values = {"id": id_, "name": name, "description": description}
    return Manifest.of({**values, "index": INDEX, "metadata": METADATA})


def _manifest_for(folder: Path) -> Manifest:
    """Return the manifest of ``try``, with an id that no other folder has."""
    path = folder.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")[:40] or "folder"
    digest = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = printable_line(path.name).strip()[:100] or "Folder"
    return _manifest(f"{slug}-{digest}", name, f"Tried: {name}")


def _try_folder(plugin: KnowledgePlugin, folder: Path) -> Path:
    """Return the folder of the dataset that ``try`` makes of a folder of documents."""
    return plugin.context.state_dir / "tried" / _manifest_for(folder).id


def _check_not_empty(report: BuildReport, folder: Path) -> None:
    if not report.chunks:
        reasons = "; ".join(
            f"{skip.path}: {skip.reason}" for skip in report.skipped[:_DEFAULT_RESULTS]
        )
        cause = f" ({reasons})" if reasons else ""
        raise BuildError(f"{folder} has no documents that can be read{cause}")


def _report_text(report: BuildReport) -> str:
    counts = f"{report.chunks} passages of {report.files} files, {report.unchanged} unchanged"
    skipped = (f"skipped {skip.path}: {skip.reason}" for skip in report.skipped)
    return "\n".join([f"{report.id}: {counts}, in {report.path}", *skipped])


def _search(workers: Workers, folder: Path, question: str, limit: int) -> SearchAnswer:
    source = read_source(folder / MANIFEST_NAME, [folder])
    if isinstance(source, Excluded):
        raise BuildError(source.reason)
    began = perf_counter()
    hits = workers.start(tasks.search, source.files, source.manifest, question, limit).result()
    milliseconds = round((perf_counter() - began) * 1000, 1)
    return search_answer(source.id, question, hits, milliseconds)
