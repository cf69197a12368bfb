"""Commands of ``standards-mcp products``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import anyio
import click

from standards_mcp import InvalidInputError, ToolCaller
from standards_mcp.commands import examples, json_option, print_answer, print_result, progress_bar

from .building import Options, build
from .columns import read_mapping, shown
from .encoders import Encoder
from .files import SUFFIXES
from .search import SearchAnswer
from .service import Service, catalogue_of, status
from .settings import NAMES, ProductsSettings

_MOST_SKIPPED: Final = 20


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--filters``."""
    about = """Such as '{"price": {"$lte": 15}}'."""
    return click.option("--filters", "text", metavar="JSON", help=about)(command)


def read_filters(text: str | None) -> dict[str, Any] | None:
    """Return the value of ``--filters``.

    Raises:
        InvalidInputError: The value is not a JSON object.
    """
    if text is None:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"--filters is not valid JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError("--filters must be a JSON object.")
    return parsed  # pyright: ignore[reportUnknownVariableType]


def product_lines(results: Sequence[Mapping[str, Any]]) -> str:
    """Format search results."""
    shown = [_product(rank, each) for rank, each in enumerate(results, 1)]
    return "\n\n".join(shown) or "No products were found."


def build_lines(built: Mapping[str, Any], *, dry_run: bool = False) -> str:
    """Format the report of a build."""
    counts = ", ".join(f"{built[item]:,} {item}" for item in ("indexed", "unchanged", "removed"))
    verb = "would be" if dry_run else "is"
    lines = [f"{built['collection']} {verb} built of {built['read']:,} rows: {counts}."]
    lines += _mapping(built)
    skipped = built["skipped"]
    lines += [
        f"Row {item['row']} is skipped: {item['reason']}." for item in skipped[:_MOST_SKIPPED]
    ]
    if len(skipped) > _MOST_SKIPPED:
        lines.append(f"{len(skipped) - _MOST_SKIPPED:,} more rows are skipped; --json lists all.")
    lines += [
        f"Values of {name} that could not be read: {item['count']:,}, the first {item['value']!r} "
        f"in row {item['row']}. The {name} of these products is unknown."
        for name, item in built["unread"].items()
    ]
    return "\n".join(lines)


def _mapping(built: Mapping[str, Any]) -> list[str]:
    """Format the columns of each field, and the unused columns."""
    mapping: Mapping[str, Sequence[str]] = built["mapping"]
    unused: Sequence[str] = built["unused"]
    doubtful: Mapping[str, Sequence[str]] = built["doubtful"]
    used = [f"{name} from {' or '.join(columns)}" for name, columns in mapping.items() if columns]
    missing = [name for name, columns in mapping.items() if not columns]
    lines = [f"Columns: {', '.join(used)}."]
    if missing:
        lines.append(f"The file has no column that the mapping names for {shown(missing)}.")
    lines += [
        f"The columns {' and '.join(map(repr, columns))} could each be the {name}; the first is "
        "used. A mapping can name another."
        for name, columns in doubtful.items()
    ]
    if unused:
        lines.append(f"Columns that are not used: {shown(unused)}. A mapping can add them.")
    return lines


def _product(rank: int, product: Mapping[str, Any]) -> str:
    price = "price not known" if product["price"] is None else f"${product['price']:,.2f}"
    rating = None if product["rating"] is None else f"{product['rating']:g} of 5"
    about = ", ".join(part for part in (price, rating, product["brand"], product["sku"]) if part)
    return f"{rank}. {product['title']}\n   {about}"


@click.command(
    "search",
    epilog=examples(
        'products search "a lamp for the desk"',
        'products search "a lamp" --filters \'{"brand": {"$ne": "Acme"}}\' --json',
    ),
)
@click.argument("query")
@with_filters
@click.option("--top", type=click.IntRange(1, 100), default=5, help="The most results.")
@json_option
@click.pass_context
def search_command(
    context: click.Context, query: str, text: str | None, *, top: int, as_json: bool
) -> None:
    """Search the products for QUERY.

    Exit code 1 when the search failed.
    """
    call: ToolCaller = context.obj
    arguments: dict[str, Any] = {"query": query, "top_k": top}
    if (filters := read_filters(text)) is not None:
        arguments["filters"] = filters
    answer = call("rag.search", arguments)
    print_answer(answer, lambda found: product_lines(found["results"]), as_json=as_json)
    context.exit(int(answer.is_error))


def status_command(settings: ProductsSettings, state_dir: Path) -> click.Command:
    """Return the command ``status``."""

    @click.command("status")
    @json_option
    @click.pass_context
    def show_status(context: click.Context, *, as_json: bool) -> None:
        """Show the number of products and their store.

        Exit code 1 if no products are built.
        """
        current = status(catalogue_of(settings, state_dir))
        lines = (
            f"{name}: {'not known' if value is None else value}" for name, value in current.items()
        )
        print_result(current, lambda: "\n".join(lines), as_json=as_json)
        context.exit(int(current["products"] is None))

    return show_status


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def build_command(settings: ProductsSettings, state_dir: Path) -> click.Command:
    """Return the command ``build``."""
    about = f"Make the products of FILE ({', '.join(SUFFIXES)}) searchable."

    @click.command(
        "build",
        help=about,
        epilog=examples(
            "products build products.csv",
            "products build products.jsonl --mapping mapping.toml --dry-run",
        ),
    )
    @click.argument("file", type=_FILE)
    @click.option("--mapping", type=_FILE, help="Fields and their columns, in TOML or JSON.")
    @click.option("--collection", help="A name in place of the configured one.")
    @click.option("--limit", type=click.IntRange(min=1), help="Read only the first rows.")
    @click.option("--dry-run", is_flag=True, help="Report without building.")
    @json_option
    def build_products(
        file: Path,
        mapping: Path | None,
        collection: str | None,
        limit: int | None,
        *,
        dry_run: bool,
        as_json: bool,
    ) -> None:
        wanted = _named(settings, collection)
        columns = read_mapping(mapping)
        encoder = Encoder(settings.model, settings.embedding_api_key)
        with progress_bar("Building", is_shown=not as_json) as progress:
            built = build(
                catalogue_of(wanted, state_dir),
                file,
                columns,
                encoder,
                Options(limit, dry_run),
                progress,
            )
        print_result(built, lambda: build_lines(built, dry_run=dry_run), as_json=as_json)

    return build_products


def _named(settings: ProductsSettings, collection: str | None) -> ProductsSettings:
    if collection is None:
        return settings
    if not re.fullmatch(NAMES, collection):
        raise click.UsageError(
            "--collection has 3 to 512 letters, digits, '.', '_' and '-', and begins and ends with "
            "a letter or digit."
        )
    return settings.model_copy(update={"collection": collection})


_RESULTS: Final = 5
_PATIENCE: Final = 60.0
_NAME: Final = "shipped"


def try_command(settings: ProductsSettings, state_dir: Path) -> click.Command:
    """Return the command ``try``."""

    @click.command(
        "try",
        epilog=examples(
            'products try "a cleaner for steel that is kind to the environment"',
            'products try "a present for a cook" --filters \'{"price": {"$lte": 15}}\'',
        ),
    )
    @click.argument("query")
    @with_filters
    @json_option
    def try_query(query: str, text: str | None, *, as_json: bool) -> None:
        """Search the example products for QUERY.

        They are separate from your products, and invented with their makers and prices.
        """
        filters = read_filters(text)
        if not (wanted := query.strip()):
            raise InvalidInputError("The query is empty. Write what to search for.")
        folder = state_dir / "tried"
        changes = {"path": folder / "chroma", "url": None, "collection": _NAME}
        catalogue = catalogue_of(settings.model_copy(update=changes), folder)
        encoder = Encoder(settings.model, settings.embedding_api_key)
        with (
            as_file(files("standards_mcp_products") / "data" / "products.csv") as file,
            progress_bar("Building", is_shown=not as_json) as progress,
        ):
            waiting = Options(patience=_PATIENCE)
            build(catalogue, file, read_mapping(None), encoder, waiting, progress)
        service = Service(catalogue, encoder, settings.timeout)

        async def search() -> SearchAnswer:
            return await service.search(wanted, _RESULTS, filters)

        try:
            answer = anyio.run(search)
        finally:
            service.close()
        print_result(answer, lambda: product_lines(answer["results"]), as_json=as_json)

    return try_query


def commands(settings: ProductsSettings, state_dir: Path) -> list[click.Command]:
    """Return the commands.

    Args:
        state_dir: The plugin's state folder.
    """
    return [
        try_command(settings, state_dir),
        build_command(settings, state_dir),
        status_command(settings, state_dir),
        search_command,
    ]
