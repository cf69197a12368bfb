"""The command ``standards-mcp web search``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import Report, ask_tool, examples, reports


@click.command(
    "search",
    epilog=examples(
        'web search "solar eclipse 2027"', 'web search "graphing calculator price" --top 3 --json'
    ),
)
@click.argument("query")
@click.option("--top", type=click.IntRange(1, 5), default=5, help="Maximum number of results.")
@click.pass_obj
@reports
def search_command(call: ToolCaller, query: str, *, top: int) -> Report:
    """Search the web for QUERY.

    Exit code 1 if no pages were found or the search failed.
    """
    arguments = {"query": query, "top_k": top}
    return ask_tool(call, "web.search", arguments, _pages_text, is_found=lambda it: it["results"])


def _pages_text(answer: Mapping[str, Any]) -> str:
    pages = [_page(rank, page) for rank, page in enumerate(answer["results"], 1)]
    return "\n\n".join(pages) or answer.get("notice", "No pages were found.")


def _page(rank: int, page: Mapping[str, Any]) -> str:
    sold = ", ".join(page[key] for key in ("price", "availability") if page[key])
    lines = (page["url"], page["snippet"], sold)
    return "\n".join([f"{rank}. {page['title']}", *(f"   {line}" for line in lines if line)])
