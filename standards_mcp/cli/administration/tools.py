"""``standards-mcp tools`` and ``standards-mcp call``."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any, cast

import click

from standards_mcp._utils.text import did_you_mean
from standards_mcp.calls.steps.output import definition_tokens
from standards_mcp.cli.completion import all_tools, offer, served_tools
from standards_mcp.cli.failures import show_failures
from standards_mcp.cli.invocation import Invocation
from standards_mcp.commands import examples, json_option, print_json, print_table, print_text
from standards_mcp.config.edits import with_tool_disabled, with_tool_enabled
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import first_match
from standards_mcp.config.problems import no_match
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.contributions.visible.gains import gained
from standards_mcp.contributions.visible.selection import select
from standards_mcp.errors import StandardsMcpError
from standards_mcp.loading.records import PluginKind, PluginRecord, Status

from .agreement import yes_option
from .config_edits import dry_run_option, edit_config
from .contributions import as_data


@click.group(
    invoke_without_command=True,
    epilog=examples("tools", "tools --json", "tools disable 'web.*'"),
)
@json_option
@click.pass_context
def tools(ctx: click.Context, *, as_json: bool) -> None:
    """List every tool, why one is not served, and what it costs.

    The cost is about how many tokens of a model's context a definition takes in every conversation.
    A plugin that is not loaded has a line of its own, since its tools are not known. So does one
    that failed; the exit code is 0 even then, since `plugins check` is what judges.
    """
    if ctx.invoked_subcommand:
        return
    invocation = ctx.ensure_object(Invocation)
    show_failures(invocation)
    host = invocation.listed_host
    unloaded = [each for each in host.manager.records.values() if _is_unknown(each)]
    entries = [*map(_of_tool, host.visible().tools), *map(_of_plugin, unloaded)]
    if as_json:
        print_json(entries)
        return
    if not entries:
        print_text("No plugin contributes a tool; see `standards-mcp plugins list`.")
    print_table(_row(entry) for entry in entries)
    served = [entry for entry in entries if entry["served"]]
    cost = sum(entry["tokens"] for entry in served)
    print_text(f"\n{len(served)} served, about {cost:,} tokens; {len(entries) - len(served)} not")


@tools.command(epilog=examples("tools enable web.search", "tools enable 'web.*' --dry-run"))
@click.argument("pattern", metavar="GLOB", shell_complete=offer(all_tools))
@dry_run_option
@yes_option
@click.pass_obj
def enable(invocation: Invocation, /, pattern: str, *, dry_run: bool, yes: bool) -> None:
    """Change the configuration file so that the tools of GLOB are served again.

    It takes GLOB out of `disable`; if it is not there, it adds GLOB to `enable`, where that is set.
    What is then served beyond what was served before is listed first, and asked for. A GLOB that
    matches no tool is refused, unless it is in `disable`.
    """
    if pattern not in invocation.load_settings().settings.tools.disable:
        _refuse_no_match(invocation, pattern)
    edit_config(
        invocation,
        lambda text: with_tool_enabled(text, pattern),
        dry_run=dry_run,
        gains=partial(_gains, invocation),
        yes=yes,
    )
    with suppress(StandardsMcpError):  # the edit is made; other commands report this
        if not dry_run:
            _warn_of_hidden_tools(invocation, pattern)


@tools.command(epilog=examples("tools disable web.search", "tools disable 'web.*' --dry-run"))
@click.argument("pattern", metavar="GLOB", shell_complete=offer(all_tools))
@dry_run_option
@click.pass_obj
def disable(invocation: Invocation, /, pattern: str, *, dry_run: bool) -> None:
    """Change the configuration file so that the tools of GLOB are no longer served.

    A GLOB that matches no tool is refused.
    """
    _refuse_no_match(invocation, pattern)
    edit_config(invocation, lambda text: with_tool_disabled(text, pattern), dry_run=dry_run)


def _gains(invocation: Invocation, before: Settings, after: Settings) -> list[str]:
    """Return the tools and prompts that are served with *after* and not with *before*."""
    try:
        manager = invocation.listed_host.manager
    except StandardsMcpError as exc:
        return [f"what it matches, which cannot be listed ({exc})"]
    gained_now = gained(manager.contributions, before, after)
    failed = [name for name, each in manager.records.items() if each.status is Status.FAILED]
    if failed:
        gained_now.append(f"what it matches of {' and '.join(failed)}, which failed")
    return gained_now


def _refuse_no_match(invocation: Invocation, pattern: str) -> None:
    """Refuse a pattern that no tool can match; warn if a plugin that is not loaded may have one.

    Raises:
        click.UsageError: It matches no tool, and has a near name or all tools are known.
    """
    try:
        host = invocation.loaded_host
    except StandardsMcpError:  # the edit may be what corrects the file
        return
    names = host.visible().names["tools"]
    if first_match(names, (pattern,)):
        return
    records, providers = host.manager.records.values(), host.manager.providers()
    is_all = not any(map(_is_unknown, records)) and all(each.is_known for each in providers)
    if is_all or did_you_mean(pattern.strip("*?"), names):
        raise click.UsageError(f"{no_match(pattern, 'tools', names)}; nothing is changed")
    print_text(no_match(pattern, "tools", names), err=True)


def _warn_of_hidden_tools(invocation: Invocation, pattern: str) -> None:
    contributions = invocation.loaded_host.manager.contributions
    for item in select(contributions, invocation.load_settings().settings).tools:
        if item.hidden_reason and first_match(item.names, (pattern,)):
            again = item.hidden_reason.startswith("[tools] enable")
            hint = "; run it again to add it there" if again else ""
            print_text(
                f"{item.published} is still not served: {item.hidden_reason}{hint}", err=True
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
@click.option(
    "--json", "as_json", is_flag=True, help="Print the text, the structure and the notes as JSON."
)
@click.pass_context
def call(ctx: click.Context, tool: str, arguments: str, *, as_json: bool) -> None:
    """Call TOOL as a client would and print its answer.

    What the host adds to it, such as that it was cut, is on stderr; with --json it is a key.
    Exit code 1 when it fails or finds nothing, 2 when the arguments are wrong.
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
        raise click.UsageError(f"--args is not JSON: {exc}") from None
    if not isinstance(data, dict):
        raise click.UsageError('--args must be a JSON object, for example \'{"grade": "3"}\'')
    return cast("dict[str, Any]", data)


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    name, declared = entry["name"] or "-", entry["declared_name"]
    known = name if declared in (None, name) else f"{name} ({declared})"
    cost = f"{entry['tokens']:,}" if entry["served"] else ""
    state = "served" if entry["served"] else f"not served: {entry['reason']}"
    if entry["read_only"]:
        state = f"read-only, {state}"
    return known, entry["plugin"], cost, state


def _is_unknown(record: PluginRecord) -> bool:
    """Return True if a plugin contributes nothing, for the reason in its record."""
    return bool(record.reason) and not record.contributions


def _of_tool(item: RegisteredTool) -> dict[str, Any]:
    return as_data(item) | {
        "tokens": definition_tokens(item),
        "read_only": item.tool.read_only,
        "input_schema": item.arguments.schema,
    }


def _of_plugin(record: PluginRecord) -> dict[str, Any]:
    how = "failed" if record.status is Status.FAILED else f"is {record.status}"
    what = "server" if record.info.kind is PluginKind.SERVER else "plugin"
    return {
        "name": None,
        "declared_name": None,
        "plugin": record.name,
        "read_only": False,
        "tokens": 0,
        "served": False,
        "reason": f"{what} {record.name!r} {how}: {record.reason}",
    }
