"""``standards-mcp data ...``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import fields, replace
from typing import Any, cast

import anyio
import click

from standards_mcp import ServiceError
from standards_mcp.commands import (
    Report,
    counted,
    divert_stdout,
    examples,
    print_text,
    reports,
    table,
)
from standards_mcp_catalog.backends import backends
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.errors import CatalogUnavailableError
from standards_mcp_catalog.results import CatalogStats

from .importing import import_command
from .removing import remove
from .sets import crosswalks, export, rename, sets, template
from .snapshots import publish_command, pull_command
from .workplace import ProgressLine, Workplace


@click.group()
@click.pass_context
def data(ctx: click.Context) -> None:
    """Load standards, look at what is loaded, rebuild the index, and upload to Pinecone."""
    ctx.call_on_close(ctx.ensure_object(Workplace).close)


for _command in (
    crosswalks,
    export,
    import_command,
    publish_command,
    pull_command,
    remove,
    rename,
    sets,
    template,
):
    data.add_command(_command)


def data_commands(workplace: Workplace) -> click.Group:
    """Return the group ``data`` with the commands of the backends, which all get *workplace*."""
    group = copy(data)
    of_backends = (command for backend in backends().values() for command in backend.commands)
    group.commands = {**data.commands, **{str(command.name): command for command in of_backends}}
    group.context_settings = {"obj": workplace}  # for completion, too
    return group


@data.command(epilog=examples("data status", "data status --json"))
@click.pass_obj
@reports
def status(workplace: Workplace) -> Report:
    """Show the size, the place and the state of the catalog.

    If the catalog is in Pinecone, the embedded index is shown, too. Exit code 1 if Pinecone does
    not answer.
    """
    with divert_stdout():
        facts = anyio.run(_status, workplace)
    return Report(facts, lambda: table(_table_rows(facts)), int("error" in facts))


async def _status(workplace: Workplace) -> dict[str, Any]:
    from standards_mcp_catalog.local.catalog import LocalCatalog

    catalog, settings = workplace.configured(), workplace.settings
    facts: dict[str, Any]
    try:
        if isinstance(catalog, LocalCatalog):
            await catalog.facets()  # fills a new catalog
        stats = await catalog.stats()
        details = {"search": await _search_state(catalog), "reason": settings.choice[1]}
        facts = _facts(replace(stats, details=details | dict(stats.details)))
    except CatalogUnavailableError as error:
        backend, reason = settings.choice
        if backend == "local":
            raise
        name = settings.pinecone.index_name
        facts = {"backend": backend, "location": name, "reason": reason, "error": str(error)}
    finally:
        await catalog.aclose()
    if facts["backend"] == "pinecone":
        embedded = _facts(await workplace.embedded.stats())
        del embedded["backend"]
        facts["embedded_index"] = {
            name: value for name, value in embedded.items() if not isinstance(value, Mapping)
        }
    return facts


def _facts(stats: CatalogStats) -> dict[str, Any]:
    facts = {each.name: getattr(stats, each.name) for each in fields(stats)}
    details = facts.pop("details")
    return {**facts, **details}


async def _search_state(catalog: Catalog) -> str:
    try:
        return " ".join(await catalog.check()) or "ok"
    except ServiceError as error:
        return str(error)


def _table_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        label = key.replace("_", " ")
        if isinstance(value, Mapping):
            for name, count in cast("Mapping[str, object]", value).items():
                yield label, f"{name}: {count}"
                label = ""
        else:
            yield label, str(value)


@data.command(epilog=examples("data build"))
@click.pass_obj
def build(workplace: Workplace) -> None:
    """Rebuild the index from the loaded standards, whatever its state.

    Texts that were embedded before are not embedded again. An interrupted build goes on where it
    stopped, and searches use the old index until the new one is complete.
    """
    with divert_stdout(), ProgressLine() as progress:
        stats = workplace.embedded.store.build(progress)
    print_text(f"Built the index of {counted(stats.records, 'record')} in {stats.location}")
