"""Commands that ask the products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import examples, json_option, print_answer, print_result
from standards_mcp_products.service import catalogue_of
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.status import status

from .showing import products, read_filters, with_filters


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
    print_answer(answer, lambda found: products(found["results"]), as_json=as_json)
    context.exit(int(answer.is_error))


def status_command(settings: ProductsSettings, state_dir: Path) -> click.Command:
    """Return the command ``status``."""

    @click.command("status")
    @json_option
    @click.pass_context
    def show_status(context: click.Context, *, as_json: bool) -> None:
        """Say which products there are, and where.

        Exit code 1 when there are none.
        """
        found = status(catalogue_of(settings, state_dir))
        lines = (
            f"{name}: {'not known' if value is None else value}" for name, value in found.items()
        )
        print_result(found, lambda: "\n".join(lines), as_json=as_json)
        context.exit(int(found["products"] is None))

    return show_status
