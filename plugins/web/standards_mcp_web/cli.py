"""The command ``standards-mcp web search``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import examples, json_option, print_answer


@click.command(
    "search",
    epilog=examples(
        'web search "solar eclipse 2027"', 'web search "graphing calculator price" --top 3 --json'
    ),
)
@click.argument("query")
@click.option("--top", type=click.IntRange(1, 5), default=5, help="The most results.")
@json_option
@click.pass_context
def search_command(context: click.Context, query: str, *, top: int, as_json: bool) -> None:
    """Search the web for QUERY.

    Exit code 1 when nothing was found or the search failed.
    """
    call: ToolCaller = context.obj
    answer = call("web.search", {"query": query, "top_k": top})
    print_answer(answer, _shown, as_json=as_json)
    found = answer.structured or {}
    context.exit(int(answer.is_error or not found["results"]))


def _shown(found: Mapping[str, Any]) -> str:
    pages = [_page(rank, each) for rank, each in enumerate(found["results"], 1)]
    return "\n\n".join(pages) or found.get("notice", "Nothing was found.")


def _page(rank: int, page: Mapping[str, Any]) -> str:
    sold = ", ".join(page[key] for key in ("price", "availability") if page[key])
    lines = (page["url"], page["snippet"], sold)
    return "\n".join([f"{rank}. {page['title']}", *(f"   {line}" for line in lines if line)])
