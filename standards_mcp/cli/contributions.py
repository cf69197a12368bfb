"""``standards-mcp prompts`` and ``standards-mcp resources``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource

from .invocation import Invocation
from .output import examples, print_json, print_table


@click.command(epilog=examples("prompts", "prompts --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def prompts(invocation: Invocation, *, as_json: bool) -> None:
    """List every prompt, the tools that it needs, and why one is not served."""
    found = invocation.loaded_host.visible().prompts
    _show([_of_prompt(item) for item in found], "prompt", as_json=as_json)


@click.command(epilog=examples("resources", "resources --json"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def resources(invocation: Invocation, *, as_json: bool) -> None:
    """List every resource, and why one is not served."""
    found = invocation.loaded_host.visible().resources
    _show([_of_resource(item) for item in found], "resource", as_json=as_json)


def _show(entries: Iterable[dict[str, Any]], kind: str, *, as_json: bool) -> None:
    found = list(entries)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(f"No plugin contributes a {kind}; see `standards-mcp plugins list`.")
    print_table(
        (
            entry["name"],
            entry["plugin"],
            entry.get("uri") or ", ".join(entry["needs"]),
            "served" if entry["served"] else f"not served: {entry['reason']}",
        )
        for entry in found
    )


def _of_prompt(item: RegisteredPrompt) -> dict[str, Any]:
    schema = item.arguments.schema
    return _common(item) | {
        "arguments": list(schema["properties"]),
        "needs": list(item.prompt.needs),
        "uses": list(item.prompt.uses),
    }


def _of_resource(item: RegisteredResource) -> dict[str, Any]:
    return _common(item) | {"uri": item.resource.uri, "mime_type": item.resource.mime_type}


def _common(item: Contribution) -> dict[str, Any]:
    return {
        "name": item.published,
        "declared_name": item.declared,
        "plugin": item.plugin,
        "title": item.title,
        "description": item.description,
        "served": not item.hidden_reason,
        "reason": item.hidden_reason,
    }
