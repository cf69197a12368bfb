"""``standards-mcp data upload`` and ``data diff``: from the embedded index to Pinecone."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

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
from standards_mcp.errors import ConfigError

from .names import chosen_sets, jurisdiction_option, sets_option
from .workplace import ProgressLine, Workplace

if TYPE_CHECKING:
    from standards_mcp_catalog.local.catalog import LocalCatalog
    from standards_mcp_catalog.pinecone.client import PineconeClient
    from standards_mcp_catalog.pinecone.upload import Report
    from standards_mcp_catalog.records import StandardRecord

_SHOWN = 10


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
def upload(
    ctx: click.Context,
    /,
    *,
    dry_run: bool,
    batch_size: int,
    create: bool,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Bring the standards of the embedded index into Pinecone.

    Only what is new or changed is written. After an interruption, run it again. Exit code 1 when
    a record was refused.
    """
    from standards_mcp_catalog.pinecone import upload as work

    async def run(
        records: Iterator[StandardRecord], client: PineconeClient, **options: Any
    ) -> Report:
        is_missing = await work.prepare_index(client, create=create, dry_run=dry_run)
        if dry_run:
            return await work.diff(records, client, is_missing=is_missing, **options)
        return await work.upload(records, client, batch_size=batch_size, **options)

    report = _run(ctx.ensure_object(Workplace), chosen, run)
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
    from standards_mcp_catalog.pinecone import upload as work

    _show(_run(workplace, chosen, work.diff), as_json=as_json)


def _run(
    workplace: Workplace,
    chosen: Mapping[str, Any],
    work: Callable[..., Awaitable[Report]],
) -> Report:
    local, client = _stores(workplace)

    def show(report: Report) -> None:
        progress.show(f"{report.read:,} records read, {report.written:,} written")

    async def run() -> Report:
        try:
            wanted = chosen_sets(local.store, **chosen)
            held = {each.id for each in local.store.records()} if wanted else set[str]()
            return await work(local.store.records(wanted), client, progress=show, held=held)
        finally:
            await client.aclose()
            await local.aclose()

    with divert_stdout(), ProgressLine() as progress:
        return anyio.run(run)


def _stores(workplace: Workplace) -> tuple[LocalCatalog, PineconeClient]:
    """Return the two stores, whichever of them the configuration chooses for searching."""
    from standards_mcp_catalog import open_pinecone

    access = workplace.settings.pinecone.access
    if access is None:
        raise ConfigError("Pinecone needs a key; set PINECONE_API_KEY in the environment or .env")
    return workplace.embedded, open_pinecone(access)


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
    more = ", ..." if len(ids) > _SHOWN else ""
    return f"{len(ids):,}" + (f": {', '.join(ids[:_SHOWN])}{more}" if ids else "")
