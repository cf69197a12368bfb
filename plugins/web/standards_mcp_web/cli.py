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
@click.option("--top", type=click.IntRange(1, 5), default=5, help="Maximum number of results.")
@json_option
@click.pass_context
def search_command(context: click.Context, query: str, *, top: int, as_json: bool) -> None:
    """Search the web for QUERY.

    Exit code 1 if no pages were found or the search failed.
    """
    call: ToolCaller = context.obj
    answer = call("web.search", {"query": query, "top_k": top})
    print_answer(answer, _pages_text, as_json=as_json)
    content = answer.structured or {}
    context.exit(int(answer.is_error or not content["results"]))


def _pages_text(answer: Mapping[str, Any]) -> str:
    pages = [_page(rank, page) for rank, page in enumerate(answer["results"], 1)]
    return "\n\n".join(pages) or answer.get("notice", "No pages were found.")


def _page(rank: int, page: Mapping[str, Any]) -> str:
    sold = ", ".join(page[key] for key in ("price", "availability") if page[key])
    lines = (page["url"], page["snippet"], sold)
    return "\n".join([f"{rank}. {page['title']}", *(f"   {line}" for line in lines if line)])
