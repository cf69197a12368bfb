"""``standards-mcp tools`` and ``standards-mcp call``."""

from __future__ import annotations

import json
from typing import Any, cast

import click

from standards_mcp.declarations import RegisteredTool
from standards_mcp.discovery import PluginRecord, Status

from .invocation import Invocation
from .output import print_json, print_table


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def tools(invocation: Invocation, *, as_json: bool) -> None:
    """List every tool, and why one is not served.

    Of a plugin that is not loaded, the tools are not known; it has a line of its own.
    """
    manager = invocation.loaded_host.manager
    unloaded = [record for record in manager.records.values() if record.reason]
    entries = [*map(_of_tool, manager.tools()), *map(_of_plugin, unloaded)]
    if as_json:
        print_json(entries)
        return
    if not entries:
        click.echo("No plugin contributes a tool; see `standards-mcp plugins list`.")
    print_table(
        (
            entry["name"] or "-",
            entry["plugin"],
            "served" if entry["served"] else f"not served: {entry['reason']}",
        )
        for entry in entries
    )


@click.command()
@click.argument("tool")
@click.option("--args", "arguments", default="{}", metavar="JSON", help="Arguments as JSON.")
@click.pass_context
def call(ctx: click.Context, tool: str, arguments: str) -> None:
    """Call TOOL as a client would and print its answer.

    Exit code 1 when it fails or finds nothing, 2 when the arguments are wrong.
    """
    result = ctx.ensure_object(Invocation)(tool, _parse_arguments(arguments))
    if result.structured is None:
        click.echo(result.text)
    else:
        print_json(result.structured)
    structured = result.structured or {}
    if result.is_error or structured.get("success") is False:
        ctx.exit(2 if structured.get("error_type") == "invalid_input" else 1)


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as exc:
        raise click.UsageError(f"--args is not JSON: {exc}") from None
    if not isinstance(data, dict):
        raise click.UsageError('--args must be a JSON object, for example \'{"grade": "3"}\'')
    return cast("dict[str, Any]", data)


def _of_tool(item: RegisteredTool) -> dict[str, Any]:
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


def _of_plugin(record: PluginRecord) -> dict[str, Any]:
    how = "failed" if record.status is Status.FAILED else f"is {record.status}"
    return {
        "name": None,
        "plugin": record.name,
        "served": False,
        "reason": f"plugin {record.name!r} {how}: {record.reason}",
    }
