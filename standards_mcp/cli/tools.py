"""``standards-mcp tools``, ``prompts``, ``resources``, ``skills`` and ``call``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

import click

from standards_mcp._utils.text import did_you_mean
from standards_mcp.commands import (
    Look,
    Report,
    examples,
    json_option,
    offer,
    print_json,
    print_table,
    print_text,
    reports,
    table,
)
from standards_mcp.config.edits import with_tool_disabled, with_tool_enabled
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import first_match
from standards_mcp.config.problems import no_match
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.selection import gained, select
from standards_mcp.contributions.tools import RegisteredTool, definition_tokens
from standards_mcp.errors import StandardsMcpError
from standards_mcp.loading.records import PluginKind, PluginRecord, Status

from .config_edits import dry_run_option, edit_config, yes_option
from .invocation import Invocation

_LOOK: Final[Look] = {r"^\S+": "strong", "not served:.*": "warning"}


def _all_tools(invocation: Invocation) -> Iterator[tuple[str, str]]:
    for item in invocation.loaded_host.visible().tools:
        yield item.tool.name, item.title or ""


def _served_tools(invocation: Invocation) -> Iterator[tuple[str, str]]:
    for item in invocation.loaded_host.visible().visible_tools:
        yield item.published, item.title or ""


@click.group(
    invoke_without_command=True,
    epilog=examples("tools", "tools --json", "tools disable 'web.*'"),
)
@json_option
@click.pass_context
def tools(ctx: click.Context, *, as_json: bool) -> None:
    """List every tool, the reason if it is not served, and its cost.

    The cost is about the number of tokens that a definition takes in every conversation. A plugin
    that is not loaded or has failed has a line of its own, since its tools are unknown. The exit
    code is 0 even then; use `plugins check` to judge plugins.
    """
    if ctx.invoked_subcommand:
        return
    invocation = ctx.ensure_object(Invocation)
    invocation.mute_failures(warnings=False)
    host = invocation.listed_host
    not_loaded = [each for each in host.manager.records.values() if _is_unknown(each)]
    entries = [*map(_tool_entry, host.visible().tools), *map(_plugin_entry, not_loaded)]
    if as_json:
        print_json(entries)
        return
    if not entries:
        print_text("No plugin contributes a tool; see `standards-mcp plugins list`.")
    print_table(map(_row, entries), _LOOK)
    served = [entry for entry in entries if entry["served"]]
    cost = sum(entry["tokens"] for entry in served)
    print_text(f"\n{len(served)} served, about {cost:,} tokens; {len(entries) - len(served)} not")


@tools.command(epilog=examples("tools enable web.search", "tools enable 'web.*' --dry-run"))
@click.argument("pattern", metavar="GLOB", shell_complete=offer(_all_tools))
@dry_run_option
@yes_option
@click.pass_obj
def enable(invocation: Invocation, /, pattern: str, *, dry_run: bool, yes: bool) -> None:
    """Change the configuration file so that the tools of GLOB are served again.

    GLOB is removed from `disable`, or added to an existing `enable`. The tools that this would
    expose are listed first and need confirmation. A GLOB that matches no tool is refused,
    unless it is in `disable`.
    """
    if pattern not in invocation.load_settings().settings.tools.disable:
        _refuse_no_match(invocation, pattern)
    edit_config(
        invocation.sources,
        lambda text: with_tool_enabled(text, pattern),
        dry_run=dry_run,
        list_newly_exposed=partial(_list_newly_exposed, invocation),
        yes=yes,
    )
    with suppress(StandardsMcpError):  # the edit is made; other commands report this
        if not dry_run:
            _warn_of_hidden_tools(invocation, pattern)


@tools.command(epilog=examples("tools disable web.search", "tools disable 'web.*' --dry-run"))
@click.argument("pattern", metavar="GLOB", shell_complete=offer(_all_tools))
@dry_run_option
@click.pass_obj
def disable(invocation: Invocation, /, pattern: str, *, dry_run: bool) -> None:
    """Change the configuration file so that the tools of GLOB are no longer served.

    A GLOB that matches no tool is refused.
    """
    _refuse_no_match(invocation, pattern)
    edit_config(invocation.sources, lambda text: with_tool_disabled(text, pattern), dry_run=dry_run)


def _list_newly_exposed(invocation: Invocation, before: Settings, after: Settings) -> list[str]:
    """Return the tools, prompts and skills that only *after* exposes."""
    try:
        manager = invocation.listed_host.manager
    except StandardsMcpError as exc:
        return [f"all matches, which cannot be listed ({exc})"]
    newly_exposed = gained(manager.contributions, before, after)
    failed = [name for name, each in manager.records.items() if each.status is Status.FAILED]
    if failed:
        newly_exposed.append(f"all matches in {' and '.join(failed)}, which failed")
    return newly_exposed


def _refuse_no_match(invocation: Invocation, pattern: str) -> None:
    """Refuse a pattern that no tool can match; warn if a plugin that is not loaded may match.

    Raises:
        click.UsageError: No tool matches, and all tools are known or one has a similar name.
    """
    try:
        host = invocation.loaded_host
    except StandardsMcpError:  # the edit may correct the file
        return
    names = host.visible().names["tools"]
    if first_match(names, (pattern,)):
        return
    records, providers = host.manager.records.values(), host.manager.providers()
    all_known = not any(map(_is_unknown, records)) and all(each.is_known for each in providers)
    if all_known or did_you_mean(pattern.strip("*?"), names):
        raise click.UsageError(f"{no_match(pattern, 'tools', names)}; nothing was changed")
    print_text(no_match(pattern, "tools", names), err=True)


def _warn_of_hidden_tools(invocation: Invocation, pattern: str) -> None:
    contributions = invocation.loaded_host.manager.contributions
    for item in select(contributions, invocation.load_settings().settings).tools:
        if item.hidden_reason and first_match(item.names, (pattern,)):
            is_by_enable = item.hidden_reason.startswith("[tools] enable")
            hint = "; run this command again to add it there" if is_by_enable else ""
            print_text(
                f"{item.published} is still not served: {item.hidden_reason}{hint}", err=True
            )


@click.command(
    epilog=examples(
        'call get_standard_details --args \'{"standard_id": "3.NF.A.1"}\'',
        'call find_relevant_standards --args \'{"activity": "clocks"}\'',
    )
)
@click.argument("tool", shell_complete=offer(_served_tools))
@click.option(
    "--args",
    "arguments",
    default="{}",
    metavar="JSON",
    help="The arguments, as one JSON object; by default {}.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the text, the structure and the notes as JSON."
)
@click.pass_context
def call(ctx: click.Context, tool: str, arguments: str, *, as_json: bool) -> None:
    """Call TOOL as a client would and print its answer.

    Notes of the host, for example that the answer was cut, go to stderr; with --json they are a
    key. Exit code 1 if the call fails or finds nothing, 2 if the arguments are invalid.
    """
    result = ctx.ensure_object(Invocation)(tool, _parse_arguments(arguments))
    if as_json:
        shown = ("text", "structured", "is_error", "notes")
        print_json({name: getattr(result, name) for name in shown})
    else:
        if result.structured is None:
            print_text(result.text)
        else:
            print_json(result.structured)
        for note in result.notes:
            print_text(f"note: {note}", err=True)
    structured = result.structured or {}
    if result.is_error or structured.get("success") is False:
        ctx.exit(2 if structured.get("error_type") == "invalid_input" else 1)


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as exc:
        raise click.UsageError(f"--args is not valid JSON: {exc}") from None
    if not isinstance(data, dict):
        raise click.UsageError('--args must be a JSON object, for example \'{"grade": "3"}\'')
    return cast("dict[str, Any]", data)


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    name, declared = entry["name"] or "-", entry["declared_name"]
    names = name if declared in (None, name) else f"{name} ({declared})"
    cost = f"{entry['tokens']:,}" if entry["served"] else ""
    state = "served" if entry["served"] else f"not served: {entry['reason']}"
    if entry["read_only"]:
        state = f"read-only, {state}"
    return names, entry["plugin"], cost, state


def _is_unknown(record: PluginRecord) -> bool:
    """Return True if the tools of a plugin are unknown, because it is not loaded or has failed."""
    return bool(record.reason) and not record.contributions


def _tool_entry(item: RegisteredTool) -> dict[str, Any]:
    return _common_keys(item) | {
        "tokens": definition_tokens(item),
        "read_only": item.tool.read_only,
        "input_schema": item.arguments.schema,
    }


def _plugin_entry(record: PluginRecord) -> dict[str, Any]:
    state = "failed" if record.status is Status.FAILED else f"is {record.status}"
    kind = "server" if record.info.kind is PluginKind.SERVER else "plugin"
    return {
        "name": None,
        "declared_name": None,
        "plugin": record.name,
        "read_only": False,
        "tokens": 0,
        "served": False,
        "reason": f"{kind} {record.name!r} {state}: {record.reason}",
    }


@click.command(epilog=examples("prompts", "prompts --json"))
@click.pass_obj
@reports
def prompts(invocation: Invocation) -> Report:
    """List every prompt, its tools, and the reason if it is not served."""
    entries = [
        _common_keys(item)
        | {
            "arguments": list(item.arguments.schema["properties"]),
            "needs": list(item.prompt.needs),
            "uses": list(item.prompt.uses),
        }
        for item in invocation.listed_host.visible().prompts
    ]
    return _listed(entries, "prompt")


@click.command(epilog=examples("resources", "resources --json"))
@click.pass_obj
@reports
def resources(invocation: Invocation) -> Report:
    """List every resource, and the reason if it is not served."""
    entries = [
        _common_keys(item) | {"uri": item.resource.uri, "mime_type": item.resource.mime_type}
        for item in invocation.listed_host.visible().resources
    ]
    return _listed(entries, "resource")


@click.command(epilog=examples("skills", "skills --json"))
@click.pass_obj
@reports
def skills(invocation: Invocation) -> Report:
    """List every skill, its tools, and the reason if it is not served."""
    entries = [
        _common_keys(item) | {"name": item.declared, "needs": list(item.needs)} | item.definition
        for item in invocation.listed_host.visible().skills
    ]
    return _listed(entries, "skill")


def _listed(entries: list[dict[str, Any]], kind: str) -> Report:
    rows = [
        (
            entry["name"],
            entry["plugin"],
            entry.get("uri") or ", ".join(entry["needs"]),
            "served" if entry["served"] else f"not served: {entry['reason']}",
        )
        for entry in entries
    ]
    no_entries = f"No plugin contributes a {kind}; see `standards-mcp plugins list`."
    return Report(entries, lambda: table(rows) or no_entries)


def _common_keys(item: Contribution) -> dict[str, Any]:
    """Return the keys that ``--json`` prints for any contribution."""
    return {
        "name": item.published,
        "declared_name": item.declared,
        "plugin": item.plugin,
        "title": item.title,
        "description": item.description,
        "served": not item.hidden_reason,
        "reason": item.hidden_reason,
    }
