"""``standards-mcp data ...``."""

from __future__ import annotations

import anyio
import click

from standards_mcp._stdout import divert_stdout
from standards_mcp.catalog import CatalogStats

from .invocation import Invocation
from .output import print_json, print_table


@click.group()
def data() -> None:
    """Look at the standards that are loaded, and rebuild their index."""


@data.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def status(invocation: Invocation, *, as_json: bool) -> None:
    """Show what the catalog holds, where, and in what state."""

    async def read() -> CatalogStats:
        try:
            return await invocation.host.catalog.stats()
        finally:
            await invocation.host.catalog.aclose()

    with divert_stdout():
        stats = anyio.run(read)
    facts = {
        "backend": stats.backend,
        "location": stats.location,
        "records": stats.records,
        "model": stats.model,
        "size_bytes": stats.size_bytes,
        **stats.details,
    }
    if as_json:
        print_json(facts)
    else:
        print_table((key.replace("_", " "), str(value)) for key, value in facts.items())
