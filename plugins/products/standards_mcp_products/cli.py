"""Commands of ``standards-mcp products``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError

from standards_mcp import InvalidInputError, ToolCaller
from standards_mcp.commands import Report, ask_tool, examples, progress_bar, reports

from .building import Options, build
from .columns import join_names, read_mapping
from .files import SUFFIXES
from .filters import read_filters
from .search import search
from .settings import COLLECTION_NAME, ProductsSettings
from .store import Catalogue, NotBuiltError, Store

_MAX_SHOWN_ROWS: Final = 20
_MAX_RESULTS: Final = 5
_BUILD_WAIT_SECONDS: Final = 60.0
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_OBJECT: Final = TypeAdapter(dict[str, Any])


def _parse_filters(
    _: click.Context, option: click.Parameter, text: str | None
) -> dict[str, Any] | None:
    """Parse ``--filters``, a JSON object."""
    try:
        return None if text is None else _OBJECT.validate_json(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise click.BadParameter(f"it is not a JSON object: {reason}", param=option) from None


_filters_option: Final = click.option(
    "--filters",
    metavar="JSON",
    callback=_parse_filters,
    help="""Such as '{"price": {"$lte": 15}}'.""",
)


@click.command(
    "search",
    epilog=examples(
        'products search "a lamp for the desk"',
        'products search "a lamp" --filters \'{"brand": {"$ne": "Acme"}}\' --json',
    ),
)
@click.argument("query")
@_filters_option
@click.option("--top", type=click.IntRange(1, 100), default=5, help="Maximum number of results.")
@click.pass_obj
@reports
def search_command(
    call: ToolCaller, query: str, filters: dict[str, Any] | None, *, top: int
) -> Report:
    """Search the products for QUERY.

    Exit code 1 when the search failed, 2 for invalid filters.
    """
    arguments = {"query": query, "top_k": top, "filters": filters}
    return ask_tool(call, "rag.search", arguments, _product_lines)


def commands(settings: ProductsSettings, state_dir: Path) -> list[click.Command]:
    """Return the commands.

    Args:
        state_dir: The plugin's state folder.
    """

    @click.command(
        "try",
        epilog=examples(
            'products try "a cleaner for steel that is kind to the environment"',
            'products try "a present for a cook" --filters \'{"price": {"$lte": 15}}\'',
        ),
    )
    @click.argument("query")
    @_filters_option
    @reports
    def try_query(query: str, filters: dict[str, Any] | None) -> Report:
        """Search the example products for QUERY.

        The examples are separate from your products. Their makers and prices are invented.
        """
        conditions = read_filters(filters)
        if not query.strip():
            raise InvalidInputError("The query is empty. Write what to search for.")
        folder = state_dir / "tried"
        changes = {"path": folder / "chroma", "url": None, "collection": "shipped"}
        catalogue = Catalogue(settings.model_copy(update=changes), folder)
        with (
            as_file(files("standards_mcp_products") / "data" / "products.csv") as file,
            progress_bar("Building") as progress,
        ):
            encoder = settings.open_encoder()
            options = Options(patience=_BUILD_WAIT_SECONDS, progress=progress)
            build(catalogue, file, read_mapping(None), encoder, options)
        vector = encoder.encode([query.strip()])[0].tolist()
        with closing(Store(catalogue)) as store:
            answer = search(store, encoder.name, vector, conditions, _MAX_RESULTS)
        return Report(answer, lambda: _product_lines(answer))

    @click.command(
        "build",
        help=f"Make the products of FILE ({', '.join(SUFFIXES)}) searchable.",
        epilog=examples(
            "products build products.csv",
            "products build products.jsonl --mapping mapping.toml --dry-run",
        ),
    )
    @click.argument("file", type=_FILE)
    @click.option("--mapping", type=_FILE, help="Fields and their columns, in TOML or JSON.")
    @click.option("--collection", help="Name in place of the configured one.")
    @click.option("--limit", type=click.IntRange(min=1), help="Read only the first rows.")
    @click.option("--dry-run", is_flag=True, help="Report without building.")
    @reports
    def build_products(
        file: Path,
        mapping: Path | None,
        collection: str | None,
        limit: int | None,
        *,
        dry_run: bool,
    ) -> Report:
        columns, name = read_mapping(mapping), collection or settings.collection
        if not re.fullmatch(COLLECTION_NAME, name):
            raise click.UsageError(
                "--collection has 3 to 512 letters, digits, '.', '_' and '-', and begins and ends "
                "with a letter or digit"
            )
        catalogue = Catalogue(settings.model_copy(update={"collection": name}), state_dir)
        with progress_bar("Building") as progress:
            options = Options(limit, dry_run, progress=progress)
            report = build(catalogue, file, columns, settings.open_encoder(), options)
        return Report(report, lambda: _build_lines(report, dry_run=dry_run))

    @click.command("status")
    @reports
    def show_status() -> Report:
        """Show the number of products and their store.

        Exit code 1 if no products are built.
        """
        catalogue = Catalogue(settings, state_dir)
        with closing(Store(catalogue)) as store:
            try:
                products = store.ask(lambda collection: collection.count())
            except NotBuiltError:
                products = None
        active = catalogue.active()
        # A collection that another program has built has no entry in active.json: None.
        built = active and datetime.fromtimestamp(active.built, UTC).isoformat(timespec="seconds")
        status = {
            "store": catalogue.store_key,
            "collection": catalogue.name,
            "products": products,
            "active": active and active.collection,
            "model": active and active.model,
            "source": active and active.source,
            "built": built,
        }
        lines = (
            f"{name}: {'not known' if value is None else value}" for name, value in status.items()
        )
        return Report(status, lambda: "\n".join(lines), int(status["products"] is None))

    return [try_query, build_products, show_status, search_command]


def _product_lines(answer: Mapping[str, Any]) -> str:
    return "\n\n".join(map(_product, answer["results"], count(1))) or "No products were found."


def _product(product: Mapping[str, Any], rank: int) -> str:
    price = "price not known" if product["price"] is None else f"${product['price']:,.2f}"
    rating = None if product["rating"] is None else f"{product['rating']:g} of 5"
    about = ", ".join(part for part in (price, rating, product["brand"], product["sku"]) if part)
    return f"{rank}. {product['title']}\n   {about}"


def _build_lines(report: Mapping[str, Any], *, dry_run: bool) -> str:
    counts = ", ".join(f"{report[item]:,} {item}" for item in ("indexed", "unchanged", "removed"))
    verb = "would be" if dry_run else "is"
    mapping: Mapping[str, list[str]] = report["mapping"]
    used = [f"{name} from {' or '.join(columns)}" for name, columns in mapping.items() if columns]
    lines = [
        f"{report['collection']} {verb} built of {report['read']:,} rows: {counts}.",
        f"Columns: {', '.join(used)}.",
    ]
    if missing := [name for name, columns in mapping.items() if not columns]:
        lines.append(f"The file has no column that the mapping names for {join_names(missing)}.")
    if unused := report["unused"]:
        lines.append(f"Columns that are not used: {join_names(unused)}. A mapping can add them.")
    skipped = report["skipped"]
    lines += [
        f"Row {item['row']} is skipped: {item['reason']}." for item in skipped[:_MAX_SHOWN_ROWS]
    ]
    if len(skipped) > _MAX_SHOWN_ROWS:
        lines.append(f"{len(skipped) - _MAX_SHOWN_ROWS:,} more rows are skipped; --json lists all.")
    lines += [
        f"Values of {name} that could not be read: {item['count']:,}, the first {item['value']!r} "
        f"in row {item['row']}. The {name} of these products is unknown."
        for name, item in report["unread"].items()
    ]
    return "\n".join(lines)
