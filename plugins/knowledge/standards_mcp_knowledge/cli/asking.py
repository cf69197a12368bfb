"""Commands that call the tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from standards_mcp import ToolCaller, ToolResult

from . import showing


@click.command("list")
@click.option("--errors", is_flag=True, help="Also those that are left out, and why.")
@showing.as_json
@click.pass_context
def list_datasets(context: click.Context, *, errors: bool, is_json: bool) -> None:
    """List the datasets."""
    call: ToolCaller = context.obj
    answer = call("knowledge.listDatasets", {"includeErrors": errors})

    def shown(found: dict[str, Any]) -> str:
        return "\n".join(map(showing.dataset, found["datasets"])) or "There are no datasets."

    _print(context, answer, shown, is_json=is_json)


@click.command("search")
@click.argument("dataset")
@click.argument("query")
@showing.top
@showing.as_json
@click.pass_context
def search(
    context: click.Context, dataset: str, query: str, *, top: int | None, is_json: bool
) -> None:
    """Search DATASET for passages that answer QUERY."""
    call: ToolCaller = context.obj
    more = {} if top is None else {"topK": top}
    answer = call("knowledge.search", {"dataset": dataset, "query": query, **more})
    _print(context, answer, lambda found: showing.hits(found["results"]), is_json=is_json)


def _print(
    context: click.Context,
    answer: ToolResult,
    shown: Callable[[dict[str, Any]], str],
    *,
    is_json: bool,
) -> None:
    found = answer.structured or {}
    if is_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    elif answer.is_error:
        click.echo(found.get("message", answer.text), err=True)
    else:
        click.echo(shown(found))
    context.exit(int(answer.is_error))
