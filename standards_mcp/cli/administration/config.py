"""``standards-mcp config ...``."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import anyio
import click
from pydantic import BaseModel

from standards_mcp._utils.files import replace_text
from standards_mcp._utils.full_disk import reason_of
from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp.cli.invocation import Invocation
from standards_mcp.cli.service_checks import service_problems, service_warnings
from standards_mcp.commands import examples, json_option, print_json, print_text
from standards_mcp.config.layers import key_name, leaves, toml_key, toml_value
from standards_mcp.config.loading import config_paths, file_text
from standards_mcp.config.problems import Problem, check_addresses, check_folders, check_programs
from standards_mcp.config.schema import config_schema, config_template
from standards_mcp.contributions.argument_overrides import value_problems
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.providers import provider_of
from standards_mcp.loading.records import Status
from standards_mcp.loading.shown_values import shown_values


@click.group()
def config() -> None:
    """Show, check and write the configuration."""


@config.command(
    epilog=examples("config init", "config init ~/.config/standards-mcp/standards-mcp.toml")
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--force", is_flag=True, help="Replace a file that is there; a copy is kept.")
@click.pass_obj
def init(invocation: Invocation, /, file: Path | None, *, force: bool) -> None:
    """Write a commented FILE that changes nothing yet: every key with its default.

    FILE is that of --config or STANDARDS_MCP_CONFIG unless given, and else standards-mcp.toml in
    this folder.
    """
    if file and invocation.config and file != invocation.config:
        raise click.UsageError(f"--config names {invocation.config}, and FILE is {file}; give one")
    file = file or config_paths(invocation.config)[0]
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already; use --force to replace it")
    try:
        gone = _keys_of(file)
        known = invocation if file.exists() else replace(invocation, config=None)
        backup = replace_text(file, config_template(_models(known)))
    except OSError as exc:
        raise click.ClickException(f"{file} cannot be written: {reason_of(exc)}") from None
    print_text(f"Wrote {file}" + (f"; the old file is {backup.name}" if backup else ""))
    if gone:
        print_text(f"No longer set, so that more may be served: {', '.join(gone)}")


@config.command(epilog=examples("config show --origin", "--profile teacher config show --json"))
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@json_option
@click.pass_obj
def show(invocation: Invocation, *, origin: bool, as_json: bool) -> None:
    """Print the values in force, as TOML; secrets are masked."""
    host = invocation.loaded_host
    values = shown_values(host.settings, host.manager.records.values(), host.secrets())
    layers = host.layers
    sources = {path: layers.origin(path) or "default" for path in values}
    if as_json:
        print_json(
            [
                {"key": ".".join(map(toml_key, path)), "value": value, "origin": sources[path]}
                for path, value in values.items()
            ]
        )
        return
    table: tuple[str, ...] = ()
    for path, value in sorted(values.items(), key=lambda item: len(item[0]) > 1):
        if path[:-1] != table:
            table = path[:-1]
            print_text(f"\n[{'.'.join(map(toml_key, table))}]")
        line = f"{toml_key(path[-1])} = {toml_value(value)}"
        print_text(f"{line:<44}  # {sources[path]}" if origin else line)


@config.command(epilog=examples("config check"))
@click.pass_context
def check(ctx: click.Context) -> None:
    """Read the configuration as `serve` does and say what is wrong with it.

    Exit code 1 when a plugin fails, a pattern names nothing, a tool refuses a value that an
    override gives it, a folder or a program is missing, or the service over HTTP could not start;
    2 when the file is refused. A plugin's secret in the file is reported, and is no failure.
    Isolated plugins and servers are not started: `plugins check` does that.
    """
    invocation = ctx.ensure_object(Invocation)
    invocation.report_alone()
    host = invocation.loaded_host
    failed = [
        f"plugin {record.name}: {record.reason}"
        for record in host.manager.records.values()
        if record.status is Status.FAILED
    ]
    values = [each.line(host.loaded.layers) for each in _value_problems(host)]
    checks = (check_programs, check_addresses, check_folders)
    named = [each for find in checks for each in find(host.settings)]
    missing = [each.line(host.loaded.layers) for each in named]
    blocked = service_problems(host.settings.server)
    problems = [*failed, *host.warnings(), *values, *missing, *blocked]
    for line in (*problems, *host.exposed_secrets(), *service_warnings(host.settings.server)):
        print_text(line)
    if problems:
        ctx.exit(1)
    print_text(f"ok: {host.loaded.file or 'no file; every key has its default'}")
    if (path := host.settings.catalog.path) and not path.exists():
        print_text(f"[catalog] path: {path} does not exist yet; it is made at its first use")
    records = host.manager.records.values()
    if elsewhere := ", ".join(record.name for record in records if provider_of(record)):
        print_text(
            f"not started: {elsewhere}; `standards-mcp plugins check` starts them and says more"
        )


@config.command(epilog=examples("config schema > standards-mcp.schema.json"))
@click.pass_obj
def schema(invocation: Invocation) -> None:
    """Print a JSON Schema of the file, with the keys of every installed plugin.

    An editor that knows TOML checks and completes the file by it.
    """
    print_json(config_schema(_models(invocation)))


def _value_problems(host: Host) -> list[Problem]:
    async def ask() -> list[Problem]:
        tools, overrides = host.manager.contributions.tools, host.settings.tools.overrides
        try:
            return await value_problems(tools, overrides)
        finally:
            await host.catalog.aclose()  # a filter may have opened it

    with divert_stdout():
        return anyio.run(ask)


def _models(invocation: Invocation) -> dict[str, type[BaseModel]]:
    try:
        records = invocation.loaded_host.manager.records.values()
    except StandardsMcpError:
        return {}  # a file with errors must not prevent that a new one is written
    return {record.name: record.settings_type for record in records if record.settings_type}


def _keys_of(file: Path) -> list[str]:
    """Return the keys that a file sets; none where it is not there, or not TOML."""
    try:
        return [key_name(path) for path, _ in leaves(tomllib.loads(file_text(file))) if path]
    except (FileNotFoundError, ValueError, RecursionError):
        return []
