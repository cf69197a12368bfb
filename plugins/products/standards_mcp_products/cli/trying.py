"""The command to begin with: it builds the products that the plugin ships, and answers."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import anyio
import click

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_result, progress_bar
from standards_mcp_products import data
from standards_mcp_products.answers import SearchAnswer
from standards_mcp_products.building import Options, build, read_mapping
from standards_mcp_products.encoders import Encoder
from standards_mcp_products.service import Service, catalogue_of
from standards_mcp_products.settings import ProductsSettings

from .showing import products, read_filters, with_filters

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
        """Search products that the plugin ships for QUERY.

        They are kept apart from yours. They, their makers and their prices are invented.
        """
        filters = read_filters(text)
        if not (wanted := query.strip()):
            raise InvalidInputError("Ask something: the query is empty.")
        folder = state_dir / "tried"
        changes = {"path": folder / "chroma", "url": None, "collection": _NAME}
        catalogue = catalogue_of(settings.model_copy(update=changes), folder)
        encoder = Encoder(settings.model, settings.embedding_api_key)
        with (
            as_file(files(data) / "products.csv") as file,
            progress_bar("Building", is_shown=not as_json) as progress,
        ):
            waiting = Options(patience=_PATIENCE)
            build(catalogue, file, read_mapping(None), encoder, waiting, progress)
        service = Service(catalogue, encoder, settings.timeout)

        async def search() -> SearchAnswer:
            return await service.search(wanted, _RESULTS, filters)

        try:
            found = anyio.run(search)
        finally:
            service.close()
        print_result(found, lambda: products(found["results"]), as_json=as_json)

    return try_query
