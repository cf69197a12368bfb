"""``standards-mcp data ...``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
import click

from standards_mcp._stdout import divert_stdout
from standards_mcp.catalog import Catalog, CatalogError, CatalogStats
from standards_mcp.catalog.local import LocalCatalog

from .data_import import import_command
from .data_sets import export, remove, sets, template
from .data_upload import diff, upload
from .invocation import Invocation
from .output import print_json, print_table

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


@click.group()
def data() -> None:
    """Load standards, look at what is loaded, rebuild the index, and upload to Pinecone."""


for _command in (diff, export, import_command, remove, sets, template, upload):
    data.add_command(_command)


@data.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def status(invocation: Invocation, *, as_json: bool) -> None:
    """Show what the catalog holds, where, and in what state."""

    async def read() -> tuple[CatalogStats, str]:
        catalog = invocation.host.catalog
        try:
            if isinstance(catalog, LocalCatalog):
                await catalog.facets()  # fills a catalog that is new
            return await invocation.host.catalog_stats(), await _search_state(catalog)
        finally:
            await catalog.aclose()

    with divert_stdout():
        stats, search = anyio.run(read)
    facts = {
        "backend": stats.backend,
        "location": stats.location,
        "records": stats.records,
        "model": stats.model,
        "size_bytes": stats.size_bytes,
        "search": search,
        **stats.details,
    }
    if as_json:
        print_json(facts)
    else:
        print_table(_lines(facts))


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


@data.command()
@click.pass_obj
def build(invocation: Invocation) -> None:
    """Rebuild the index from the loaded standards, whatever state it is in.

    Texts that were embedded before are not embedded again. An interrupted build goes on where it
    stopped, and the old index serves until the new one is complete.
    """
    with divert_stdout(), _Progress("Embedding") as progress:
        stats = invocation.embedded_catalog.store.build(progress)
    click.echo(f"Built the index of {stats.records:,} records in {stats.location}")


class _Progress:
    """A progress bar on a terminal, and silence elsewhere."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: ProgressBar[int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = click.progressbar(length=total, label=self._label, file=sys.stderr)
        self._bar.update(done - self._bar.pos)
