"""Commands that call the tools."""

from __future__ import annotations

from typing import Any

import click

from standards_mcp import ToolCaller
from standards_mcp.commands import examples, json_option, print_answer

from . import showing


@click.command("list")
@click.option("--errors", is_flag=True, help="Also those that are left out, and why.")
@json_option
@click.pass_context
def list_datasets(context: click.Context, *, errors: bool, as_json: bool) -> None:
    """List the datasets."""
    call: ToolCaller = context.obj
    answer = call("knowledge.listDatasets", {"includeErrors": errors})

    def shown(found: dict[str, Any]) -> str:
        return "\n".join(map(showing.dataset, found["datasets"])) or "There are no datasets."

    print_answer(answer, shown, as_json=as_json)
    context.exit(int(answer.is_error))


@click.command("search", epilog=examples('knowledge search guide "How do I switch a tool off?"'))
@click.argument("dataset")
@click.argument("query")
@showing.top
@json_option
@click.pass_context
def search(
    context: click.Context, dataset: str, query: str, *, top: int | None, as_json: bool
) -> None:
    """Search DATASET for passages that answer QUERY."""
    call: ToolCaller = context.obj
    more = {} if top is None else {"topK": top}
    answer = call("knowledge.search", {"dataset": dataset, "query": query, **more})
    print_answer(answer, lambda found: showing.hits(found["results"]), as_json=as_json)
    context.exit(int(answer.is_error))
