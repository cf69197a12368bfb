"""The store's entry point: open the catalog in Pinecone, and ``data upload`` and ``data diff``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import anyio
import click

from standards_mcp.commands import (
    divert_stdout,
    examples,
    json_option,
    print_json,
    print_table,
    print_text,
)
from standards_mcp_catalog.backends import Backend
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.commands.names import chosen_sets, jurisdiction_option, sets_option
from standards_mcp_catalog.commands.workplace import ProgressLine, Workplace
from standards_mcp_catalog.settings import PineconeCatalogSettings

from .client import FallbackCatalog, PineconeClient
from .writing import Report, Upload, prepare_index

_MOST_SHOWN = 10


def open_catalog(settings: PineconeCatalogSettings, embedded: Callable[[], Catalog]) -> Catalog:
    """Return the catalog in Pinecone, with the embedded one as fallback if that is configured."""
    client = PineconeClient(settings)
    return client if settings.fallback == "none" else FallbackCatalog(client, embedded())


@click.command(
    epilog=examples("data upload --dry-run", "data upload --create", "data upload --set ID")
)
@sets_option
@jurisdiction_option
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@click.option(
    "--batch-size", type=click.IntRange(1, 96), default=96, help="Records in one request, 1 to 96."
)
@click.option("--create", is_flag=True, help="Make the index when there is none.")
@json_option
@click.pass_context
def upload(ctx: click.Context, /, *, as_json: bool, **options: Any) -> None:
    """Bring the standards of the embedded index into Pinecone.

    Only what is new or changed is written. After an interruption, run it again. Exit code 1 when
    a record was refused.
    """
    report = _run(ctx.ensure_object(Workplace), **options)
    _show(report, as_json=as_json)
    if report.refused:
        ctx.exit(1)


@click.command(epilog=examples("data diff", "data diff --json"))
@sets_option
@jurisdiction_option
@json_option
@click.pass_obj
def diff(workplace: Workplace, /, *, as_json: bool, **chosen: Any) -> None:
    """Show how the embedded index and the one in Pinecone differ; nothing is written."""
    report = _run(workplace, dry_run=True, create=False, batch_size=96, **chosen)
    _show(report, as_json=as_json)


def _run(
    workplace: Workplace, *, dry_run: bool, create: bool, batch_size: int, **chosen: Any
) -> Report:
    client, local = PineconeClient(workplace.settings.pinecone), workplace.embedded

    def show(report: Report) -> None:
        line.show(f"{report.read:,} records read, {report.written:,} written")

    async def run() -> Report:
        try:
            wanted = chosen_sets(local.store, **chosen)
            local_ids = {each.id for each in local.store.records()} if wanted else set[str]()
            is_new = await prepare_index(client, create=create, dry_run=dry_run)
            options = Upload(
                dry_run=dry_run,
                is_new=is_new,
                batch_size=batch_size,
                local_ids=local_ids,
                progress=show,
            )
            return await options.run(local.store.records(wanted), client)
        finally:
            await client.aclose()
            await local.aclose()

    with divert_stdout(), ProgressLine() as line:
        return anyio.run(run)


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(report) | {"complete": report.complete})
        return
    print_table(
        [
            ("new", _ids(report.new)),
            ("changed", _ids(report.changed)),
            ("unchanged", f"{report.unchanged:,}"),
            ("only in Pinecone", _ids(report.extra)),
            ("refused", f"{len(report.refused):,}"),
            ("written", f"{report.written:,}"),
        ]
    )
    for id_, reason in report.refused:
        print_text(f"refused {id_}: {reason}", err=True)


def _ids(ids: list[str]) -> str:
    more = ", ..." if len(ids) > _MOST_SHOWN else ""
    return f"{len(ids):,}" + (f": {', '.join(ids[:_MOST_SHOWN])}{more}" if ids else "")


PINECONE: Final = Backend(open=open_catalog, commands=(diff, upload))
