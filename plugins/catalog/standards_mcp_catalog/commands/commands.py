"""``standards-mcp data ...``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, cast

import anyio
import click

from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp._utils.text import counted
from standards_mcp.cli.invocation import Invocation
from standards_mcp.commands import examples, json_option, print_json, print_table, print_text
from standards_mcp_catalog import CatalogError
from standards_mcp_catalog.base import Catalog, CatalogStats
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.pinecone.client import PineconeUnavailableError

from .crosswalks import crosswalks
from .importing import import_command
from .progress import ImportProgress
from .removing import remove
from .sets import export, rename, sets, template
from .upload import diff, upload


@click.group()
def data() -> None:
    """Load standards, look at what is loaded, rebuild the index, and upload to Pinecone."""


_COMMANDS = (crosswalks, diff, export, import_command, remove, rename, sets, template, upload)
for _command in _COMMANDS:
    data.add_command(_command)


@data.command(epilog=examples("data status", "data status --json"))
@json_option
@click.pass_context
def status(ctx: click.Context, *, as_json: bool) -> None:
    """Show what the catalog holds, where, and in what state.

    Where that is Pinecone, the embedded index is shown too. Exit code 1 when Pinecone does not
    answer.
    """
    with divert_stdout():
        facts = anyio.run(_status, ctx.ensure_object(Invocation))
    if as_json:
        print_json(facts)
    else:
        print_table(_lines(facts))
    if "error" in facts:
        ctx.exit(1)


async def _status(invocation: Invocation) -> dict[str, Any]:
    catalog, table = invocation.host.catalog, invocation.host.settings.catalog
    facts: dict[str, Any]
    try:
        if isinstance(catalog, LocalCatalog):
            await catalog.facets()  # fills a catalog that is new
        stats = await invocation.host.catalog_stats()
        facts = _facts(stats, await _search_state(catalog))
    except PineconeUnavailableError as error:
        name, reason = table.pinecone.index_name, table.choice[1]
        facts = {"backend": "pinecone", "location": name, "reason": reason, "error": str(error)}
    finally:
        await catalog.aclose()
    if facts["backend"] == "pinecone":
        embedded = _facts(await invocation.embedded_catalog.stats())
        facts["embedded_index"] = {
            name: value
            for name, value in embedded.items()
            if name != "backend" and not isinstance(value, Mapping)
        }
    return facts


def _facts(stats: CatalogStats, search: str = "") -> dict[str, Any]:
    facts = {each.name: getattr(stats, each.name) for each in fields(stats)}
    details = facts.pop("details")
    return facts | ({"search": search} if search else {}) | dict(details)


async def _search_state(catalog: Catalog) -> str:
    try:
        return " ".join(await catalog.check()) or "ok"
    except CatalogError as error:
        return str(error)


def _lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
def build(invocation: Invocation) -> None:
    """Rebuild the index from the loaded standards, whatever state it is in.

    Texts that were embedded before are not embedded again. An interrupted build goes on where it
    stopped, and the old index serves until the new one is complete.
    """
    with divert_stdout(), ImportProgress() as progress:
        stats = invocation.embedded_catalog.store.build(progress)
    print_text(f"Built the index of {counted(stats.records, 'record')} in {stats.location}")
