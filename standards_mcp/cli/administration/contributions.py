"""``standards-mcp prompts`` and ``standards-mcp resources``."""

from __future__ import annotations

from typing import Any

import click

from standards_mcp.cli.invocation import Invocation
from standards_mcp.commands import examples, json_option, print_json, print_table, print_text
from standards_mcp.contributions.base import Contribution


@click.command(epilog=examples("prompts", "prompts --json"))
@json_option
@click.pass_obj
def prompts(invocation: Invocation, *, as_json: bool) -> None:
    """List every prompt, the tools that it needs, and why one is not served."""
    entries = [
        as_data(item)
        | {
            "arguments": list(item.arguments.schema["properties"]),
            "needs": list(item.prompt.needs),
            "uses": list(item.prompt.uses),
        }
        for item in invocation.listed_host.visible().prompts
    ]
    _show(entries, "prompt", as_json=as_json)


@click.command(epilog=examples("resources", "resources --json"))
@json_option
@click.pass_obj
def resources(invocation: Invocation, *, as_json: bool) -> None:
    """List every resource, and why one is not served."""
    entries = [
        as_data(item) | {"uri": item.resource.uri, "mime_type": item.resource.mime_type}
        for item in invocation.listed_host.visible().resources
    ]
    _show(entries, "resource", as_json=as_json)


def _show(entries: list[dict[str, Any]], kind: str, *, as_json: bool) -> None:
    if as_json:
        print_json(entries)
        return
    if not entries:
        print_text(f"No plugin contributes a {kind}; see `standards-mcp plugins list`.")
    print_table(
        (
            entry["name"],
            entry["plugin"],
            entry.get("uri") or ", ".join(entry["needs"]),
            "served" if entry["served"] else f"not served: {entry['reason']}",
        )
        for entry in entries
    )


def as_data(item: Contribution) -> dict[str, Any]:
    """Return what ``--json`` prints about any contribution."""
    return {
        "name": item.published,
        "declared_name": item.declared,
        "plugin": item.plugin,
        "title": item.title,
        "description": item.description,
        "served": not item.hidden_reason,
        "reason": item.hidden_reason,
    }
