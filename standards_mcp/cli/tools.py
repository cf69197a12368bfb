"""``standards-mcp tools`` and ``standards-mcp call``."""

from __future__ import annotations

import json
from typing import Any, cast

import click

from standards_mcp.declarations import RegisteredTool

from .completion import offer, served_tools
from .invocation import Invocation
from .output import examples, print_json, print_table


@click.command(epilog=examples("tools", "tools --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def tools(invocation: Invocation, *, as_json: bool) -> None:
    """List every tool, and why one is not served."""
    items = invocation.loaded_host.manager.tools()
    if as_json:
        print_json([_as_data(item) for item in items])
        return
    if not items:
        click.echo("No plugin contributes a tool; see `standards-mcp plugins list`.")
    print_table(
        (item.published, item.plugin, "not served: " + item.refusal if item.refusal else "served")
        for item in items
    )


@click.command(
    epilog=examples(
        'call get_standard_details --args \'{"standard_id": "3.NF.A.1"}\'',
        'call find_relevant_standards --args \'{"activity": "clocks"}\'',
    )
)
@click.argument("tool", shell_complete=offer(served_tools))
@click.option(
    "--args",
    "arguments",
    default="{}",
    metavar="JSON",
    help="Its arguments, as one JSON object; none by default.",
)
@click.pass_context
def call(ctx: click.Context, tool: str, arguments: str) -> None:
    """Call TOOL as a client would and print its answer.

    Exit code 1 when it fails or finds nothing.
    """
    result = ctx.ensure_object(Invocation)(tool, _parse_arguments(arguments))
    if result.structured is None:
        click.echo(result.text)
    else:
        print_json(result.structured)
    if result.is_error or (result.structured or {}).get("success") is False:
        ctx.exit(1)


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as exc:
        raise click.UsageError(f"--args is not JSON: {exc}") from None
    if not isinstance(data, dict):
        raise click.UsageError('--args must be a JSON object, for example \'{"grade": "3"}\'')
    return cast("dict[str, Any]", data)


def _as_data(item: RegisteredTool) -> dict[str, Any]:
    return {
        "name": item.published,
        "declared_name": item.tool.name,
        "plugin": item.plugin,
        "title": item.tool.title,
        "description": item.description,
        "read_only": item.tool.read_only,
        "served": not item.refusal,
        "reason": item.refusal,
        "input_schema": item.arguments.schema,
    }
