"""Commands about manifests and what they describe."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import click

from standards_mcp.commands import examples, json_option, print_json, print_result
from standards_mcp_knowledge.answers import listed
from standards_mcp_knowledge.datasets import (
    Entry,
    LeftOut,
    look_into,
    manifests_in,
    read_source,
    shelved,
)
from standards_mcp_knowledge.manifests import NAME, Manifest
from standards_mcp_knowledge.service import workers_of
from standards_mcp_knowledge.settings import KnowledgeSettings
from standards_mcp_knowledge.workers import tasks


@click.command("schema")
def schema() -> None:
    """Print the JSON Schema of a manifest."""
    print_json(Manifest.model_json_schema())


def check_command(settings: KnowledgeSettings, root: Path, log: logging.Logger) -> click.Command:
    """Return the command ``check``."""

    @click.command("check", epilog=examples("knowledge check", "knowledge check guide"))
    @click.argument("what", nargs=-1, metavar="[ID or PATH]...")
    @json_option
    @click.pass_context
    def check(context: click.Context, what: tuple[str, ...], *, as_json: bool) -> None:
        """Check datasets by every rule: all, or those with an ID, or at a PATH."""
        paths = _manifests(root, what)
        entries = anyio.run(partial(_entries, settings, root, paths, log))
        found = {"datasets": [listed(each) for each in entries]}
        shown = "\n".join(map(_line, entries)) or f"There are no datasets in {root}."
        print_result(found, lambda: shown, as_json=as_json)
        context.exit(int(any(isinstance(each, LeftOut) for each in entries)))

    return check


def _line(entry: Entry) -> str:
    if isinstance(entry, LeftOut):
        return f"{entry.id} ({entry.path}): {entry.reason}"
    return f"{entry.id} ({entry.source.path}): good"


def _manifests(root: Path, what: Sequence[str]) -> list[Path]:
    known = manifests_in(root)
    if not what:
        return known
    found: list[Path] = []
    for each in what:
        path = Path(each)
        by_id = [manifest for manifest in known if _id_of(manifest, root) == each]
        if by_id:
            found += by_id
        elif os.path.isfile(path) or os.path.isfile(path / NAME):  # noqa: PTH113  - none raises
            found.append(path if path.is_file() else path / NAME)
        else:
            raise click.ClickException(f"{each} is neither the id of a dataset nor its path.")
    return list({os.path.realpath(path): path for path in found}.values())


def _id_of(manifest: Path, root: Path) -> str:
    found = read_source(manifest, [root])
    return found.id if isinstance(found, LeftOut) else found.manifest.id


async def _entries(
    settings: KnowledgeSettings, root: Path, paths: Sequence[Path], log: logging.Logger
) -> list[Entry]:
    entries: list[Entry] = []
    known = manifests_in(root)
    async with workers_of(settings, log) as pool:
        for path in paths:
            # A dataset elsewhere is checked for where it is to be.
            elsewhere = [] if path in known else [path.parent]
            roots = [root, *settings.extra_roots, *elsewhere]
            found = read_source(path, roots)
            entries.append(
                found if isinstance(found, LeftOut) else await look_into(pool, found, tasks.try_out)
            )
    return shelved(entries).entries
